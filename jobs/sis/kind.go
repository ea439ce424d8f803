package sis

// Kind is one entry of the catalogue.
type Kind struct{}
