"""Content types that the toolkit handles specially."""

JSON = "application/json"
CSV = "text/csv"
OCTET_STREAM = "application/octet-stream"
ANY = "*/*"
NPY = "application/x-npy"
NPZ = "application/x-npz"
# Bodies of these types are passed to the script as text. Bodies of all other types are passed as bytes, as are bodies of these types with
# parameters.
UTF8_TYPES = [JSON, CSV]
