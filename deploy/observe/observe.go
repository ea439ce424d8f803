// Package observe sets up what a process tells about itself: its log and its metrics (style §5; contract §6). It knows no
// component; each is handed the logger and the registry made here, and nothing is global.
package observe

import (
	"io"
	"log/slog"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Build says which program this is.
type Build struct {
	Version  string // "v1.2.3"; "unknown" when it was built without saying
	Revision string // the commit it was built from; "unknown" likewise
	Go       string // "go1.26.8"
}

const unknown = "unknown"

// NewBuild takes what the linker was told, else what the Go tool noted by itself.
func NewBuild(version, revision string) Build {
	b := Build{Version: version, Revision: revision, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	if b.Version == "" && info.Main.Version != "(devel)" {
		b.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		if b.Revision == "" && setting.Key == "vcs.revision" {
			b.Revision = setting.Value
		}
	}
	if b.Version == "" {
		b.Version = unknown
	}
	if b.Revision == "" {
		b.Revision = unknown
	}
	return b
}

// Log says how to log.
type Log struct {
	Level  slog.Level
	Format string // "json", anything else is text for people
}

// NewLogger writes to w, one record a line, with the service's name in each JSON record, and to the other handlers. Times are
// in UTC.
func NewLogger(w io.Writer, l Log, service string, others ...slog.Handler) *slog.Logger {
	return slog.New(slog.NewMultiHandler(append(others, handler(w, l, service))...))
}

func handler(w io.Writer, l Log, service string) slog.Handler {
	options := &slog.HandlerOptions{Level: l.Level, ReplaceAttr: utc}
	if l.Format != "json" {
		return slog.NewTextHandler(w, options)
	}
	return slog.NewJSONHandler(w, options).WithAttrs([]slog.Attr{slog.String("service", service)})
}

// utc writes the record's own time in UTC, so that the logs of pods in different zones sort together.
func utc(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}

// NewRegistry makes the process's registry of metrics with what Go, the system and the build itself say.
func NewRegistry(b Build) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "msgx_build_info", Help: "The program that runs; always 1.",
	}, []string{"version", "revision", "go_version"})
	info.WithLabelValues(b.Version, b.Revision, b.Go).Set(1)
	for _, c := range []prometheus.Collector{
		info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		_ = registry.Register(c) // cannot fail: the registry is empty and the names are different
	}
	return registry
}
