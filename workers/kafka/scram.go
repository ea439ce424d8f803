package kafka

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"

	"github.com/IBM/sarama"
)

// scramClients gives sarama, which brings no SCRAM of its own, the client side of RFC 5802. nil for other mechanisms.
func scramClients(mechanism string) func() sarama.SCRAMClient {
	switch mechanism {
	case sarama.SASLTypeSCRAMSHA256:
		return func() sarama.SCRAMClient { return &scram{hash: sha256.New} }
	case sarama.SASLTypeSCRAMSHA512:
		return func() sarama.SCRAMClient { return &scram{hash: sha512.New} }
	}
	return nil
}

// maxIterations bounds the work a server may ask of us before it has shown that it knows the password.
const maxIterations = 1 << 20

// scram is one exchange: client-first, client-final, the server's proof.
type scram struct {
	hash      func() hash.Hash
	password  string
	nonce     string
	firstBare string
	signature []byte // what the server must prove
	done      bool
}

// Begin starts an exchange. User and password are taken as they are: SASLprep changes no printable ASCII.
func (s *scram) Begin(user, password, _ string) error {
	s.nonce = rand.Text()
	s.password = password
	s.firstBare = "n=" + strings.NewReplacer("=", "=3D", ",", "=2C").Replace(user) + ",r=" + s.nonce
	return nil
}

// Step answers the server's last message; the first call has none.
func (s *scram) Step(challenge string) (string, error) {
	switch {
	case challenge == "":
		return "n,," + s.firstBare, nil
	case s.signature == nil:
		return s.final(challenge)
	}
	s.done = true
	proof, err := base64.StdEncoding.DecodeString(attributes(challenge)["v"])
	if err != nil || subtle.ConstantTimeCompare(proof, s.signature) != 1 {
		return "", errors.New("scram: the server did not prove that it knows the password")
	}
	return "", nil
}

// Done says that the exchange is over.
func (s *scram) Done() bool { return s.done }

func (s *scram) final(serverFirst string) (string, error) {
	a := attributes(serverFirst)
	salt, err := base64.StdEncoding.DecodeString(a["s"])
	if err != nil {
		return "", fmt.Errorf("scram: salt: %w", err)
	}
	iterations, err := strconv.Atoi(a["i"])
	if err != nil || iterations < 1 || iterations > maxIterations {
		return "", fmt.Errorf("scram: %q iterations", a["i"])
	}
	if !strings.HasPrefix(a["r"], s.nonce) || a["r"] == s.nonce {
		return "", errors.New("scram: the server answers another exchange")
	}
	salted, err := pbkdf2.Key(s.hash, s.password, salt, iterations, s.hash().Size())
	if err != nil {
		return "", fmt.Errorf("scram: %w", err)
	}
	withoutProof := "c=biws,r=" + a["r"] // biws is "n,,": no channel binding
	auth := s.firstBare + "," + serverFirst + "," + withoutProof
	clientKey := s.mac(salted, "Client Key")
	stored := s.hash()
	stored.Write(clientKey)
	proof := make([]byte, len(clientKey))
	subtle.XORBytes(proof, clientKey, s.mac(stored.Sum(nil), auth))
	s.signature = s.mac(s.mac(salted, "Server Key"), auth)
	return withoutProof + ",p=" + base64.StdEncoding.EncodeToString(proof), nil
}

func (s *scram) mac(key []byte, text string) []byte {
	m := hmac.New(s.hash, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// attributes splits "r=…,s=…,i=…".
func attributes(message string) map[string]string {
	out := make(map[string]string)
	for part := range strings.SplitSeq(message, ",") {
		if name, value, ok := strings.Cut(part, "="); ok {
			out[name] = value
		}
	}
	return out
}
