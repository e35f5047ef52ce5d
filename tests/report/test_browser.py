"""The report in a real browser, as its readers meet it: on a screen, a phone, paper, by keyboard, by ear."""

import re
import shutil

import matplotlib as mpl
import pytest

mpl.use("Agg")

from tests.report import mixed

from sfumato import DPDBSCAN, DPM, DensityTree, DPMoG, GridKMeans, MorseClustering, datasets, report

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DESKTOP, PHONE = {"width": 1100, "height": 800}, {"width": 360, "height": 740}
A4 = {"width": 718, "height": 1047}  # within margins of 1 cm, at 96 pixels per inch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("drawn"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium"),
    pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning"),
]


def releases():
    city = datasets.city(8_000, random_state=0)[0]
    wide = datasets.separated_gaussians(20_000, 5, 12, random_state=0)[0]
    around = {"bounds": datasets.CITY_BOUNDS, "random_state": 0}
    fitted = {
        "grid": GridKMeans(6, **around).fit(city),
        "spans": DPDBSCAN(1.0, 70, **around).fit(city),
        "tree": DensityTree(**around).fit(city),
        "merged": MorseClustering(DPMoG(8), **around).fit(city),
        "wide": DPM(epsilon=1, delta=1e-6, bounds=(-1, 1), random_state=0).fit(wide),
    }
    made = {"mixed": mixed.release(), "levels": mixed.release(has_profiles=False, std=30.0)}
    return {name: model.release_ for name, model in fitted.items()} | made


NAMES = ("grid", "spans", "tree", "merged", "wide", "mixed", "levels")
WITH_SLIDERS = ("spans", "tree", "merged", "wide")


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    return {name: report.write(release, folder / f"{name}.html") for name, release in releases().items()}


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, reports):
    """Open a report; what the page says to the console or wants from elsewhere fails the test."""
    complaints, pages = [], []

    def opened(name, **options):
        page = browser.new_page(**options)
        pages.append(page)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        requests: list[str] = []
        address = reports[name].as_uri()
        page.goto(address)
        complaints.extend(url for url in requests if url != address and not url.startswith("data:"))
        return page

    yield opened
    for page in pages:
        page.close()
    assert complaints == []


@pytest.mark.parametrize(
    ("scheme", "size"), [("light", DESKTOP), ("dark", PHONE)], ids=["desktop by day", "phone by night"]
)
@pytest.mark.parametrize("name", NAMES)
def test_it_opens_without_a_word(open_page, name, scheme, size):
    page = open_page(name, viewport=size, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")  # tables scroll by themselves
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background))) < 200) == (scheme == "dark")
    assert page.locator("svg:visible").count() >= 2
    assert page.screenshot(full_page=True).startswith(b"\x89PNG")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", NAMES)
def test_it_is_accessible(open_page, name, scheme):
    page = open_page(name, color_scheme=scheme)
    found = axe.Axe().run(page).response["violations"]
    assert [(each["id"], each["impact"]) for each in found if each["impact"] in ("serious", "critical")] == []


def test_a_table_on_a_card_has_its_colour_and_whole_words(open_page):
    page = open_page("mixed", viewport=DESKTOP)
    page.locator(".card summary").first.click()
    card = page.locator(".card").first
    colour = card.evaluate("card => getComputedStyle(card).backgroundColor")
    table = card.locator(".scroll").first
    assert colour in table.evaluate("table => getComputedStyle(table).backgroundImage")
    assert table.locator("thead th").first.evaluate("cell => getComputedStyle(cell).overflowWrap") == "normal"


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_captions_of_wide_tables_are_in_view(open_page, size):
    page = open_page("wide", viewport=size)
    beyond = page.evaluate(
        "[...document.querySelectorAll('.scroll caption span')].filter(span => span.checkVisibility()"
        " && span.getBoundingClientRect().right > span.closest('.scroll').getBoundingClientRect().right + 1)"
        ".map(span => span.innerText)"
    )
    assert beyond == []
    assert page.evaluate(
        "[...document.querySelectorAll('.scroll')].some(one => one.scrollWidth > one.clientWidth)"
    )


@pytest.mark.parametrize("name", WITH_SLIDERS)
def test_a_slider_changes_picture_and_numbers(open_page, name):
    page = open_page(name)
    slider, output = page.get_by_role("slider"), page.locator("output")
    assert "(as released)" in output.inner_text()
    frame = page.locator(".frame:visible")
    before = frame.locator("svg").first.inner_html(), frame.locator("tbody").first.inner_text()
    label = output.inner_text()
    slider.click(position={"x": 2, "y": 10})
    assert output.inner_text() != label
    assert slider.get_attribute("aria-valuetext") == output.inner_text()
    assert frame.count() == 1
    after = frame.locator("svg").first.inner_html(), frame.locator("tbody").first.inner_text()
    assert before[0] != after[0]
    assert before[1] != after[1]


@pytest.mark.parametrize("name", WITH_SLIDERS)
def test_it_works_by_keyboard(open_page, name):
    page = open_page(name)
    page.locator("body").press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Protection"
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.type") == "range":
            break
    output, seen = page.locator("output"), []
    n_frames = page.locator(".frame").count()
    page.keyboard.press("Home")
    for _ in range(n_frames):
        seen.append((output.inner_text(), page.locator(".frame:visible tbody").first.inner_text()))
        page.keyboard.press("ArrowRight")
    assert len(set(seen)) == n_frames
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


@pytest.mark.parametrize("name", NAMES)
def test_paper_shows_all_of_it(open_page, name):
    page = open_page(name, viewport=A4)
    page.emulate_media(media="print")
    cut = page.evaluate(
        """() => [...document.querySelectorAll("body *")]
            .filter(e => e.getClientRects().length && e.getBoundingClientRect().right > innerWidth + 1)
            .map(e => e.tagName + ": " + e.textContent)"""
    )
    assert cut == []
    sheets = page.pdf(format="A4", margin=dict.fromkeys(("top", "bottom", "left", "right"), "1cm"))
    n_sheets = len(re.findall(rb"/Type\s*/Page\b", sheets))
    height = page.evaluate("document.documentElement.scrollHeight")
    assert n_sheets >= height / A4["height"] - 1
    assert n_sheets <= 2 * height / A4["height"] + 2


def test_without_scripts_the_release_is_shown(open_page):
    page = open_page("spans", java_script_enabled=False)
    assert page.locator(".control").is_hidden()
    assert page.locator(".frame:visible").count() == 1


def test_files_stay_small(reports):
    assert all(path.stat().st_size < 6e6 for path in reports.values())
