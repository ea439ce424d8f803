package server

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

//go:embed openapi.yaml
var description []byte

// descriptionJSON is the description of every route as /openapi.json serves it.
func descriptionJSON() ([]byte, error) {
	var doc map[string]any
	if err := yaml.Unmarshal(description, &doc); err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	return b, nil
}
