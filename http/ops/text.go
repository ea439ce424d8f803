package ops

import (
	"context"

	"msgexchange/db"
	"msgexchange/jobs/message"
)

// text is the message as received; nil when it is no longer kept, or was too large to be.
func (a *API) text(ctx context.Context, q db.Querier, at message.Position) (*string, error) {
	kept, err := a.Store.RawTexts(ctx, q, []message.Position{at})
	if err != nil {
		return nil, err
	}
	raw, ok := kept[at]
	if !ok || raw.Oversize {
		return nil, nil //nolint:nilnil // no text is an answer
	}
	s := string(raw.Text)
	return &s, nil
}
