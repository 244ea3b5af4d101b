from typing import Any

from kconsumer.config.tls import TlsOptions

def open_client(options: TlsOptions) -> Any: ...
