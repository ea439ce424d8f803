package ops

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"msgexchange/db/store"
	"msgexchange/http/access"
	"msgexchange/http/problem"
	"msgexchange/jobs/fault"
)

// AuditedJobs is River UI with an audit: it cancels, retries and deletes jobs, pauses queues, and asks nobody for a reason. What it
// is told to change is on record before it does so, or is refused; how it answered is in the access log.
func (a *API) AuditedJobs(ui http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			if err := a.auditJobs(r); err != nil {
				problem.Write(w, problem.Of(err))
				return
			}
		}
		ui.ServeHTTP(w, r)
	})
}

// auditJobs puts a change that River UI is asked for on record, and its body back into r.
func (a *API) auditJobs(r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxOrderBytes))
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	scope := map[string]any{"method": r.Method, "path": r.URL.Path}
	if json.Valid(body) {
		scope["body"] = json.RawMessage(body)
	}
	caller := access.From(r.Context())
	row := store.AuditRow{At: a.Now(), Actor: caller.Actor(), Peer: caller.Peer.String(), Action: "jobs", Reason: "River UI asks for none"}
	if row.Scope, err = json.Marshal(scope); err != nil {
		return fault.Wrap(fault.Infra, "audit jobs", err)
	}
	return a.audit(r.Context(), a.Pool, row, struct{}{})
}
