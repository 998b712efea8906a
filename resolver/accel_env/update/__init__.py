"""Matrix data apart from the code: signed bundles, checked before they are used, put in place whole, and taken back."""
