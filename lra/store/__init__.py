"""The store: finished cells on disk, one record each, loose or in packs."""

from lra.store.folder import Store
from lra.store.packing import Packing, pack
from lra.store.unreadable import StoreWarning

__all__ = ["Packing", "Store", "StoreWarning", "pack"]
