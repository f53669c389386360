package web

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"

	"github.com/ttmon/ttmon/internal/lab/sim"
)

// The password of the viewer anna, and its hash as web configurations have it.
const (
	password = "correct horse"
	hash     = "$2a$04$BPik9.XoZSepzr8g/kxfDuJ5lftbL18HThz5rCEKS78bqS9LUmvjq"
)

// guarded is ttmond's configuration with a certificate of its own and a password.
func guarded(t *testing.T, dir string) (config string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ttmond"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	cert, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	config = filepath.Join(dir, "ttmon-server.toml")
	for name, b := range map[string][]byte{
		"cert.pem":          pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		"key.pem":           pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}),
		"web.yml":           []byte("tls_server_config: {cert_file: cert.pem, key_file: key.pem}\nbasic_auth_users: {anna: " + hash + "}\n"),
		"ttmon-server.toml": fmt.Appendf(nil, "[listen]\nweb_config = %q\n", filepath.Join(dir, "web.yml")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return config
}

// TestTLS: the page over TLS, for who has the password; a ticket gives a session
// there as it does on loopback.
func TestTLS(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "p150a"}, "--config", guarded(t, t.TempDir()))
	if !strings.HasPrefix(n.url, "https://") {
		t.Fatalf("the page is at %s", n.url)
	}
	client := &http.Client{Timeout: timeout, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for _, path := range []string{"/", "/api/v1/snapshot", "/api/v1/watch", "/metrics"} {
		r, err := client.Get(n.url + path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
		if r.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s without a password: %s", path, r.Status)
		}
	}
	b := newTab(t, desk)
	if _, err := chromedp.Call(b.ctx, security.SetIgnoreCertificateErrors, security.SetIgnoreCertificateErrorsParams{Ignore: true}); err != nil {
		t.Fatal(err)
	}
	with := strings.NewReplacer("https://", "https://anna:"+strings.ReplaceAll(password, " ", "%20")+"@")
	b.visit(with.Replace(n.url) + "/")
	b.says("p150a")
	b.until("it is live", `document.querySelector(".fresh.live") !== null`)
	b.says("you see what any user of this host sees")
	b.visit(with.Replace(n.ticket()))
	b.says("Signed in as root")
}
