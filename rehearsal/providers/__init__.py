"""The `eks` provider of a rehearsal (eks.py): a fake of pulumi-eks. The `aws` provider is the real one (toolchain/)."""
