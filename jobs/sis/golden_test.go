package sis_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"msgexchange/jobs/sis"
)

var update = flag.Bool("update", false, "rewrite the expected files")

func shanghai(t testing.TB) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Asia/Shanghai")
	require.NoError(t, err)
	return zone
}

// siteRules are the ignore rules of the first site (dictionary 12).
func siteRules() sis.IgnoreRules { return sis.IgnoreRules{"LDM-*", "REGN-*", "RSTA-*", "EROR-*"} }

// TestGolden decodes each testdata/KIND/CASE/in.xml and compares what the command decode would print with out.json.
func TestGolden(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/*/*/in.xml")
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, in := range cases {
		dir := filepath.Dir(in)
		t.Run(dir[len("testdata/"):], func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(in)
			require.NoError(t, err)
			m, err := sis.Decode(text, sis.Options{Zone: shanghai(t), Ignore: siteRules()})
			var got bytes.Buffer
			require.NoError(t, json.Indent(&got, sis.RenderDecoded(m, err, shanghai(t)), "", "  "))
			got.WriteByte('\n')
			compareFile(t, filepath.Join(dir, "out.json"), got.Bytes())
			if err == nil && m.Spec != nil {
				requireRoundTrip(t, m)
			}
		})
	}
}

// TestGoldenCoversCatalogue holds every kind about flights to a case that is read and twins of it that are refused, and every
// list of reference data to an answer that is read.
func TestGoldenCoversCatalogue(t *testing.T) {
	t.Parallel()
	for k := range sis.Catalogue() {
		if k.Reference != nil {
			_, err := os.Stat(filepath.Join("testdata", k.Reference.Type+"-RESP", "sample", "out.json"))
			require.NoError(t, err)
			continue
		}
		for _, want := range []string{"sample", "malformed", "protocol"} {
			_, err := os.Stat(filepath.Join("testdata", string(k.Name), want, "out.json"))
			require.NoError(t, err)
		}
	}
}

func compareFile(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(name, got, 0o644))
		return
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), string(got)))
}

// requireRoundTrip says that what was decoded is what Encode writes.
func requireRoundTrip(t require.TestingT, m sis.Message) {
	zone, err := time.LoadLocation("Asia/Shanghai")
	require.NoError(t, err)
	text := sis.Encode(m, zone)
	again, err := sis.Decode(text, sis.Options{Zone: zone})
	require.NoError(t, err, "%s", text)
	require.Empty(t, cmp.Diff(said(m), said(again)), "%s", text)
}

// said is what m says, without what is about its text alone.
func said(m sis.Message) sis.Message {
	m.Hash = [32]byte{}
	if m.Reference != nil {
		r := *m.Reference
		r.Remarks = nil
		m.Reference = &r
	}
	return m
}
