"""Matrix data apart from the code: signed archives, checked before they are used, put in place whole, and taken back."""
