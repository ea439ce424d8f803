package console

import (
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"riverqueue.com/riverui"
)

// NewJobs makes River UI for mounting under prefix. It has no door of its own and can cancel, delete and retry jobs: mount
// it behind the operator role (riverui#111, K28). Start it before it serves; it stops with the context it is started with.
func NewJobs(client *river.Client[pgx.Tx], prefix string, log *slog.Logger) (*riverui.Handler, error) {
	ui, err := riverui.NewHandler(&riverui.HandlerOpts{
		Endpoints: riverui.NewEndpoints(client, nil),
		Logger:    log,
		Prefix:    prefix,
	})
	if err != nil {
		return nil, fmt.Errorf("river ui: %w", err)
	}
	return ui, nil
}
