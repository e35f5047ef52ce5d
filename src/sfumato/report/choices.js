for (const choice of document.querySelectorAll(".choice")) {
  const input = choice.querySelector("input");
  const output = choice.querySelector("output");
  const frames = [...choice.querySelectorAll(".frame")];
  const show = () => {
    frames.forEach((frame, i) => { frame.hidden = i !== Number(input.value); });
    output.value = frames[Number(input.value)].dataset.value;
    input.setAttribute("aria-valuetext", output.value);
  };
  input.addEventListener("input", show);
  choice.querySelector(".control").hidden = false;
  show();
}
