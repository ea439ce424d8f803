//go:build kafka

package kafkatest_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	mrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"
)

// server is one Apache Kafka broker of the test's own: free ports of this machine, a temporary folder, ended by its own pid.
// Before 3.x it comes with a ZooKeeper.
type server struct {
	t         *testing.T // whose end is its end
	jars, dir string
	Addr      string // PLAINTEXT
	Secure    string // SASL_SSL: PLAIN as user, SCRAM for whoever is made
	CAFile    string
	process   *process
}

// process is a program of ours.
type process struct {
	*exec.Cmd
	ended chan struct{}
}

const (
	saslUser     = "user"
	saslPassword = "not-a-secret"
)

// startServer starts the broker of a folder of jars and waits until it answers.
func startServer(t *testing.T, version, jars string) *server {
	t.Helper()
	s := &server{t: t, jars: jars, dir: t.TempDir()}
	s.CAFile = filepath.Join(s.dir, "ca.pem")
	ports := freePorts(t, 4)
	s.Addr, s.Secure = "127.0.0.1:"+ports[0], "127.0.0.1:"+ports[1]
	certificate, key := selfSigned(t)
	require.NoError(t, os.WriteFile(s.CAFile, certificate, 0o600))
	oneLine := func(pem []byte) string { return strings.ReplaceAll(strings.TrimSpace(string(pem)), "\n", `\n`) }
	var b bytes.Buffer
	require.NoError(t, properties.Execute(&b, map[string]any{
		"ZooKeeper": strings.HasPrefix(version, "2."), "Plain": s.Addr, "Secure": s.Secure, "Controller": "127.0.0.1:" + ports[2],
		"Dir": s.dir, "Certificate": oneLine(certificate), "Key": oneLine(key), "User": saslUser, "Password": saslPassword,
	}))
	require.NoError(t, os.WriteFile(s.path("server.properties"), b.Bytes(), 0o600))
	if strings.HasPrefix(version, "2.") {
		const tickMillis = "500" // sessions of a killed broker end after four
		address := ports[2]
		zookeeper := s.background("zookeeper", "org.apache.zookeeper.server.ZooKeeperServerMain", address, s.path("zookeeper"), tickMillis)
		require.True(t, zookeeper.listens(t, "127.0.0.1:"+address), "no ZooKeeper on %s", address)
	} else {
		id := make([]byte, 16)
		_, _ = rand.Read(id)
		id[0] &= 0x3f // a name that begins with - would be an option
		out, err := s.java(t, "kafka.tools.StorageTool", "format", "-t", base64.RawURLEncoding.EncodeToString(id), "-c", s.path("server.properties")).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	s.Start(t)
	return s
}

// properties is the broker's configuration.
var properties = template.Must(template.New("").Parse(`
{{- if .ZooKeeper}}broker.id=1
zookeeper.connect={{.Controller}}
zookeeper.session.timeout.ms=2000
listeners=PLAINTEXT://{{.Plain}},SASL_SSL://{{.Secure}}
{{- else}}node.id=1
process.roles=broker,controller
controller.quorum.voters=1@{{.Controller}}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{{.Plain}},SASL_SSL://{{.Secure}},CONTROLLER://{{.Controller}}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
{{- end}}
advertised.listeners=PLAINTEXT://{{.Plain}},SASL_SSL://{{.Secure}}
inter.broker.listener.name=PLAINTEXT
log.dirs={{.Dir}}/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_{{.User}}="{{.Password}}";
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
ssl.keystore.type=PEM
ssl.keystore.certificate.chain={{.Certificate}}
ssl.keystore.key={{.Key}}
ssl.endpoint.identification.algorithm=
`))

func (s *server) path(name string) string { return filepath.Join(s.dir, name) }

func (s *server) java(t *testing.T, class string, args ...string) *exec.Cmd {
	t.Helper()
	args = append([]string{"-Xmx512m", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=ERROR", "-cp", s.jars + "/*", class}, args...)
	return exec.CommandContext(context.WithoutCancel(t.Context()), "java", args...)
}

// background starts a program that ends with the test, and tells its last words if the test failed.
func (s *server) background(name, class string, args ...string) *process {
	t := s.t
	t.Helper()
	cmd := s.java(t, class, args...)
	said, err := os.OpenFile(s.path(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer func() { _ = said.Close() }()
	cmd.Stdout, cmd.Stderr = said, said
	require.NoError(t, cmd.Start())
	p := &process{cmd, make(chan struct{})}
	go func() { defer close(p.ended); _ = cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.ended
		if text, err := os.ReadFile(said.Name()); t.Failed() && err == nil {
			t.Logf("---- %s\n%s", name, text[max(0, len(text)-4096):])
		}
	})
	return p
}

// Start starts the broker and waits until it takes connections. One that ends at once is started again: ZooKeeper may still
// remember the one before, or somebody else had its port for a moment.
func (s *server) Start(t *testing.T) {
	t.Helper()
	const tries = 10
	for range tries {
		s.process = s.background("kafka", "kafka.Kafka", s.path("server.properties"))
		if s.process.listens(t, s.Addr) && s.process.listens(t, s.Secure) {
			return
		}
	}
	require.FailNow(t, "the broker does not start")
}

// Stop ends the broker in order.
func (s *server) Stop(t *testing.T) {
	t.Helper()
	require.NoError(t, s.process.Process.Signal(syscall.SIGTERM))
	<-s.process.ended
}

// Kill is kill -9.
func (s *server) Kill(t *testing.T) {
	t.Helper()
	require.NoError(t, s.process.Process.Kill())
	<-s.process.ended
}

// Freeze stops the broker in mid-air; it goes on when told so.
func (s *server) Freeze(t *testing.T, frozen bool) {
	t.Helper()
	require.NoError(t, s.process.Process.Signal(map[bool]os.Signal{true: syscall.SIGSTOP, false: syscall.SIGCONT}[frozen]))
}

// listens waits until somebody takes connections there; it is false when the process ended before.
func (p *process) listens(t *testing.T, addr string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr); err == nil {
			_ = c.Close()
			return true
		}
		select {
		case <-tick.C:
		case <-p.ended:
			return false
		case <-ctx.Done():
			require.FailNow(t, "nobody listens on "+addr)
		}
	}
}

// freePorts finds ports below those that outgoing connections are given: while a broker is down its port must stay free, and
// whoever dials it must not meet himself.
func freePorts(t *testing.T, n int) (ports []string) {
	t.Helper()
	const lowest, width = 20_000, 12_000
	for len(ports) < n {
		port := strconv.Itoa(lowest + mrand.IntN(width))
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:"+port)
		if err != nil {
			continue
		}
		defer func() { _ = l.Close() }()
		ports = append(ports, port)
	}
	return ports
}

// selfSigned makes a certificate of this machine's, its own authority, and its key, in PEM.
func selfSigned(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test broker"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// homes reads MSGX_TEST_KAFKA_HOMES: VERSION=FOLDER of jars, one a line.
func homes(t *testing.T) (versions []string, folders map[string]string) {
	t.Helper()
	folders = make(map[string]string)
	for line := range strings.FieldsSeq(os.Getenv("MSGX_TEST_KAFKA_HOMES")) {
		version, folder, ok := strings.Cut(line, "=")
		require.True(t, ok, "MSGX_TEST_KAFKA_HOMES: %q is not VERSION=FOLDER", line)
		versions, folders[version] = append(versions, version), folder
	}
	return versions, folders
}
