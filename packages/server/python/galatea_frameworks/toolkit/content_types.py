"""The content types that have a meaning of their own."""

JSON = "application/json"
CSV = "text/csv"
OCTET_STREAM = "application/octet-stream"
ANY = "*/*"
NPY = "application/x-npy"
NPZ = "application/x-npz"
# Of these the script is given text; of all others, and of these with parameters behind them, bytes.
UTF8_TYPES = [JSON, CSV]
