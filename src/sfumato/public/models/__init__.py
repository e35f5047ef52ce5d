"""Fitted models: what a release publishes and what predicts labels. They hold released values only."""

from sfumato.public.models.base import Model
from sfumato.public.models.centres import CentreModel
from sfumato.public.models.codec import PUBLISHABLE, decode, encode
from sfumato.public.models.dbscan import DBSCANModel
from sfumato.public.models.density_tree import DensityModel
from sfumato.public.models.mixture import MixtureModel
from sfumato.public.models.morse import MorseModel
from sfumato.public.models.source_target import SourceTargetModel

__all__ = [
    "PUBLISHABLE",
    "CentreModel",
    "DBSCANModel",
    "DensityModel",
    "MixtureModel",
    "Model",
    "MorseModel",
    "SourceTargetModel",
    "decode",
    "encode",
]
