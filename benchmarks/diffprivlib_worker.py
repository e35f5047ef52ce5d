"""k-means of diffprivlib, run by the Python of its own environment: one job per line in, centres per line out."""

import json
import sys
import warnings

import numpy as np
from diffprivlib.models import KMeans

warnings.simplefilter("ignore")


def main() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        X = np.load(job["rows"])
        bounds = tuple(np.full(X.shape[1], float(bound)) for bound in job["bounds"])
        model = KMeans(job["n_clusters"], epsilon=job["epsilon"], bounds=bounds, random_state=job["seed"])
        print(json.dumps(model.fit(X).cluster_centers_.tolist()), flush=True)


if __name__ == "__main__":
    main()
