"""Content types with a special meaning."""

JSON = "application/json"
CSV = "text/csv"
OCTET_STREAM = "application/octet-stream"
ANY = "*/*"
NPY = "application/x-npy"
NPZ = "application/x-npz"
# Types that the script receives as text; all others, and these with parameters, as bytes.
UTF8_TYPES = [JSON, CSV]
