package sis_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/sis"
)

// BenchmarkDecode reads one FLOP, and a package of full size.
func BenchmarkDecode(b *testing.B) {
	flop, err := os.ReadFile("testdata/FLOP-PSDT/sample/in.xml")
	require.NoError(b, err)
	for name, text := range map[string][]byte{"flop": flop, "package": []byte(worst()["whole records"]())} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				_, err := sis.Decode(text, sis.Options{})
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkWorst is TestWorstTexts without its watch.
func BenchmarkWorst(b *testing.B) {
	for name, text := range worst() {
		raw := []byte(text())
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				_, _ = sis.Decode(raw, sis.Options{}) // errors are part of it
			}
		})
	}
}
