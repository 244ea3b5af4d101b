from typing import Any

from kconsumer.tls import TlsOptions

def open_client(options: TlsOptions) -> Any: ...
