package ops

import (
	"context"

	"msgexchange/db"
	"msgexchange/jobs/message"
)

func (a *API) text(context.Context, db.Querier, message.Position) (*string, error) { return nil, nil }
