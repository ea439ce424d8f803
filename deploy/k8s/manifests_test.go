// Package k8s_test reads the manifests strictly and holds them against the program: its keys, its commands, its grace. Only
// the fields we use are known here, so that a misspelt one is found.
package k8s_test

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"msgexchange/deploy/cli"
	"msgexchange/deploy/config"
)

// podSpec is the part of a pod that we set.
type podSpec struct {
	ServiceAccountName            string           `yaml:"serviceAccountName"`
	AutomountServiceAccountToken  *bool            `yaml:"automountServiceAccountToken"`
	RestartPolicy                 string           `yaml:"restartPolicy"`
	TerminationGracePeriodSeconds int              `yaml:"terminationGracePeriodSeconds"`
	SecurityContext               podSecurity      `yaml:"securityContext"`
	TopologySpreadConstraints     []map[string]any `yaml:"topologySpreadConstraints"`
	Containers                    []container      `yaml:"containers"`
	Volumes                       []map[string]any `yaml:"volumes"`
}

type podSecurity struct {
	RunAsNonRoot   bool              `yaml:"runAsNonRoot"`
	RunAsUser      int               `yaml:"runAsUser"`
	RunAsGroup     int               `yaml:"runAsGroup"`
	FSGroup        int               `yaml:"fsGroup"`
	SeccompProfile map[string]string `yaml:"seccompProfile"`
}

type container struct {
	Name            string                       `yaml:"name"`
	Image           string                       `yaml:"image"`
	Args            []string                     `yaml:"args"`
	EnvFrom         []map[string]any             `yaml:"envFrom"`
	Ports           []map[string]any             `yaml:"ports"`
	StartupProbe    *probe                       `yaml:"startupProbe"`
	LivenessProbe   *probe                       `yaml:"livenessProbe"`
	ReadinessProbe  *probe                       `yaml:"readinessProbe"`
	Resources       map[string]map[string]string `yaml:"resources"`
	SecurityContext struct {
		AllowPrivilegeEscalation *bool               `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool                `yaml:"readOnlyRootFilesystem"`
		Capabilities             map[string][]string `yaml:"capabilities"`
	} `yaml:"securityContext"`
	VolumeMounts []map[string]any `yaml:"volumeMounts"`
}

type probe struct {
	HTTPGet          struct{ Path, Port string } `yaml:"httpGet"`
	PeriodSeconds    int                         `yaml:"periodSeconds"`
	TimeoutSeconds   int                         `yaml:"timeoutSeconds"`
	FailureThreshold int                         `yaml:"failureThreshold"`
}

// workload is a Deployment or a Job.
type workload struct {
	APIVersion string         `yaml:"apiVersion"`
	Kind       string         `yaml:"kind"`
	Metadata   map[string]any `yaml:"metadata"`
	Spec       struct {
		Replicas                int            `yaml:"replicas"`
		Strategy                map[string]any `yaml:"strategy"`
		Selector                map[string]any `yaml:"selector"`
		BackoffLimit            int            `yaml:"backoffLimit"`
		TTLSecondsAfterFinished int            `yaml:"ttlSecondsAfterFinished"`
		Template                podTemplate    `yaml:"template"`
	} `yaml:"spec"`
}

type podTemplate struct {
	Metadata map[string]any `yaml:"metadata"`
	Spec     podSpec        `yaml:"spec"`
}

// scaledJob is KEDA's.
type scaledJob struct {
	APIVersion string         `yaml:"apiVersion"`
	Kind       string         `yaml:"kind"`
	Metadata   map[string]any `yaml:"metadata"`
	Spec       struct {
		PollingInterval            int              `yaml:"pollingInterval"`
		MinReplicaCount            int              `yaml:"minReplicaCount"`
		MaxReplicaCount            int              `yaml:"maxReplicaCount"`
		SuccessfulJobsHistoryLimit int              `yaml:"successfulJobsHistoryLimit"`
		FailedJobsHistoryLimit     int              `yaml:"failedJobsHistoryLimit"`
		ScalingStrategy            map[string]any   `yaml:"scalingStrategy"`
		Triggers                   []map[string]any `yaml:"triggers"`
		JobTargetRef               struct {
			BackoffLimit int         `yaml:"backoffLimit"`
			Template     podTemplate `yaml:"template"`
		} `yaml:"jobTargetRef"`
	} `yaml:"spec"`
}

// kustomization is the part of one that we use.
type kustomization struct {
	APIVersion         string           `yaml:"apiVersion"`
	Kind               string           `yaml:"kind"`
	Namespace          string           `yaml:"namespace"`
	NameSuffix         string           `yaml:"nameSuffix"`
	Resources          []string         `yaml:"resources"`
	Labels             []map[string]any `yaml:"labels"`
	ConfigMapGenerator []struct {
		Name     string   `yaml:"name"`
		Behavior string   `yaml:"behavior"`
		Envs     []string `yaml:"envs"`
	} `yaml:"configMapGenerator"`
	Images   []map[string]string `yaml:"images"`
	Replicas []map[string]any    `yaml:"replicas"`
}

// strictly reads a file of one YAML document that has nothing but what v has.
func strictly(t *testing.T, name string, v any) {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	require.NoError(t, d.Decode(v), name)
	require.ErrorIs(t, d.Decode(v), io.EOF, "%s: one document a file", name)
}

// pods are the templates of all pods, by the file they are in.
func pods(t *testing.T) map[string]podSpec {
	t.Helper()
	var deployment, job workload
	var burst scaledJob
	strictly(t, "base/deployment.yaml", &deployment)
	strictly(t, "base/migrate.yaml", &job)
	strictly(t, "examples/scale-from-zero/burst.yaml", &burst)
	require.Equal(t, "apps/v1", deployment.APIVersion)
	require.Equal(t, "batch/v1", job.APIVersion)
	return map[string]podSpec{
		"deployment": deployment.Spec.Template.Spec, "migrate": job.Spec.Template.Spec, "burst": burst.Spec.JobTargetRef.Template.Spec,
	}
}

func TestPodsMayDoNothingButTheirWork(t *testing.T) {
	t.Parallel()
	for name, p := range pods(t) {
		require.True(t, p.SecurityContext.RunAsNonRoot, name)
		require.Equal(t, "RuntimeDefault", p.SecurityContext.SeccompProfile["type"], name)
		require.NotNil(t, p.AutomountServiceAccountToken, name)
		require.False(t, *p.AutomountServiceAccountToken, name)
		for _, c := range p.Containers {
			require.True(t, c.SecurityContext.ReadOnlyRootFilesystem, name)
			require.NotNil(t, c.SecurityContext.AllowPrivilegeEscalation, name)
			require.False(t, *c.SecurityContext.AllowPrivilegeEscalation, name)
			require.Equal(t, []string{"ALL"}, c.SecurityContext.Capabilities["drop"], name)
			require.NotEmpty(t, c.Resources["requests"]["memory"], name)
			require.NotEmpty(t, c.Resources["limits"]["memory"], name)
			var out bytes.Buffer
			help := cli.Main(t.Context(), cli.Process{Args: append(slices.Clone(c.Args), "--help"), Stdout: &out, Stderr: &out})
			require.Zero(t, help, "%s: %v is no command: %s", name, c.Args, out.String())
		}
	}
}

func TestPodsAreProbedAndGivenTheirTime(t *testing.T) {
	t.Parallel()
	all := pods(t)
	c := all["deployment"].Containers[0]
	require.Equal(t, "/healthz", c.LivenessProbe.HTTPGet.Path, "a restart brings no database back")
	require.Equal(t, "/healthz", c.StartupProbe.HTTPGet.Path)
	require.Equal(t, "/readyz", c.ReadinessProbe.HTTPGet.Path)
	for _, name := range []string{"deployment", "burst"} {
		given := time.Duration(all[name].TerminationGracePeriodSeconds) * time.Second
		require.Greater(t, given, config.Defaults().ShutdownGrace, name)
	}
}

// Each overlay's settings are loaded as the program loads them: an unknown key or a bad value is found here and not in a pod.
func TestSettingsAreKeys(t *testing.T) {
	t.Parallel()
	base := settings(t, "base/msgexchange.env")
	overlays, err := os.ReadDir("overlays")
	require.NoError(t, err)
	require.NotEmpty(t, overlays)
	for _, o := range overlays {
		environ := slices.Concat(secrets(), base, settings(t, filepath.Join("overlays", o.Name(), "msgexchange.env")))
		c, err := config.Load(config.Sources{Environ: environ})
		require.NoError(t, err, o.Name())
		require.Equal(t, o.Name() == "shadow", c.Mode == config.Shadow, o.Name())
	}
}

// secrets are what the Secret brings.
func secrets() []string {
	return []string{"MSGX_PG_DSN=postgres://u:p@pg:5432/msgx", "MSGX_MAILBOX_DSN=u:p@tcp(mysql:3306)/box"}
}

// settings reads an env file.
func settings(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var environ []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			environ = append(environ, line)
		}
	}
	return environ
}

// Every kustomization is understood and names only files that exist; every manifest is named by one.
func TestKustomizations(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	var files []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) == ".go" {
			return err
		}
		files = append(files, path)
		if filepath.Base(path) != "kustomization.yaml" {
			return nil
		}
		named[path] = true
		var k kustomization
		strictly(t, path, &k)
		var parts []string
		parts = append(parts, k.Resources...)
		for _, g := range k.ConfigMapGenerator {
			parts = append(parts, g.Envs...)
		}
		for _, part := range parts {
			part = filepath.Join(filepath.Dir(path), part)
			_, err := os.Stat(part)
			require.NoError(t, err, path)
			named[part] = true
		}
		return nil
	})
	require.NoError(t, err)
	for _, f := range files {
		require.True(t, named[f], "no kustomization names %s", f)
	}
}

// What has no strict shape here is YAML all the same, with a kind.
func TestOtherManifestsAreYAML(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"base/service.yaml", "base/disruption.yaml", "base/serviceaccount.yaml", "overlays/prod/autoscaling.yaml"} {
		var m struct {
			APIVersion string         `yaml:"apiVersion"`
			Kind       string         `yaml:"kind"`
			Metadata   map[string]any `yaml:"metadata"`
			Automount  *bool          `yaml:"automountServiceAccountToken"`
			Spec       map[string]any `yaml:"spec"`
		}
		strictly(t, name, &m)
		require.NotEmpty(t, m.Kind, name)
		require.NotEmpty(t, m.APIVersion, name)
	}
}

// The compose file sets only keys we have, pins every image and mounts only files that exist.
func TestCompose(t *testing.T) {
	t.Parallel()
	var file struct {
		Name     string         `yaml:"name"`
		Common   map[string]any `yaml:"x-msgexchange"`
		Volumes  map[string]any `yaml:"volumes"`
		Services map[string]struct {
			Image       string            `yaml:"image"`
			Build       map[string]string `yaml:"build"`
			Environment map[string]string `yaml:"environment"`
			Command     []string          `yaml:"command"`
			Volumes     []string          `yaml:"volumes"`
			Ports       []string          `yaml:"ports"`
			Profiles    []string          `yaml:"profiles"`
			DependsOn   map[string]any    `yaml:"depends_on"`
			Healthcheck map[string]any    `yaml:"healthcheck"`
			StopGrace   string            `yaml:"stop_grace_period"`
			Restart     string            `yaml:"restart"`
			ReadOnly    bool              `yaml:"read_only"`
			CapDrop     []string          `yaml:"cap_drop"`
			SecurityOpt []string          `yaml:"security_opt"`
		} `yaml:"services"`
	}
	const dir = "../compose"
	strictly(t, dir+"/compose.yaml", &file)
	for _, want := range []string{"postgres", "mysql", "kafka", "prometheus", "grafana", "migrate", "msgexchange"} {
		require.Contains(t, file.Services, want)
	}
	for name, s := range file.Services {
		require.Regexp(t, `:[\w.]+$`, s.Image, name)
		require.NotRegexp(t, `:latest$`, s.Image, name)
		for _, v := range s.Volumes {
			if from, _, _ := strings.Cut(v, ":"); strings.HasPrefix(from, ".") {
				_, err := os.Stat(filepath.Join(dir, from))
				require.NoError(t, err, name)
			}
		}
		for _, p := range s.Ports {
			require.True(t, strings.HasPrefix(p, "127.0.0.1:"), "%s: %s is open to everybody", name, p)
		}
		if s.Build == nil {
			continue
		}
		var environ []string
		for k, v := range s.Environment {
			environ = append(environ, k+"="+v)
		}
		_, err := config.Load(config.Sources{Environ: environ})
		require.NoError(t, err, name)
	}
}
