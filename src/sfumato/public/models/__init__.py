"""Fitted models: a release publishes them and they predict labels. They hold released values only."""

from sfumato.public.models.base import Model
from sfumato.public.models.centres import CentreModel
from sfumato.public.models.codec import PUBLISHABLE, decode, encode
from sfumato.public.models.dbscan import DBSCANModel
from sfumato.public.models.density_tree import DensityModel
from sfumato.public.models.mixture import GroupedModel, MixtureModel
from sfumato.public.models.morse import MorseModel
from sfumato.public.models.source_target import SourceTargetModel
from sfumato.public.models.spanned import SpannedModel

__all__ = ["PUBLISHABLE", "CentreModel", "DBSCANModel", "DensityModel", "GroupedModel", "MixtureModel"]
__all__ += ["Model", "MorseModel", "SourceTargetModel", "SpannedModel", "decode", "encode"]
