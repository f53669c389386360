package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/node/daemon"
)

// RemoteWrite is one engine that samples are sent to.
type RemoteWrite struct {
	URL             string            `toml:"url"`
	Interval        daemon.Duration   `toml:"interval"`
	Protocol        string            `toml:"protocol"`
	Labels          map[string]string `toml:"labels"`
	Headers         map[string]string `toml:"headers"`
	Username        string            `toml:"username"`
	PasswordFile    string            `toml:"password_file"`
	BearerTokenFile string            `toml:"bearer_token_file"`
	CAFile          string            `toml:"ca_file"`
	CertFile        string            `toml:"cert_file"`
	KeyFile         string            `toml:"key_file"`
	BufferMB        int               `toml:"buffer_mb"`
}

func (c *RemoteWrite) check() error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("remote_write.url: %q is not an address like https://prometheus.example.org/api/v1/write", c.URL)
	}
	if c.Interval.Duration == 0 {
		c.Interval.Duration = 15 * time.Second
	}
	if c.Interval.Duration < time.Second || c.Interval.Duration > time.Hour {
		return fmt.Errorf("remote_write.interval: %v is not between 1s and 1h", c.Interval)
	}
	switch c.Protocol {
	case "":
		c.Protocol = "1.0"
	case "1.0", "2.0":
	default:
		return fmt.Errorf("remote_write.protocol: %q is neither 1.0 nor 2.0", c.Protocol)
	}
	if c.BufferMB == 0 {
		c.BufferMB = 256
	}
	if c.BufferMB < 1 {
		return fmt.Errorf("remote_write.buffer_mb: %d is not positive", c.BufferMB)
	}
	_, err = c.client()
	return err
}

func (c *RemoteWrite) client() (*http.Client, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		b, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("remote_write.ca_file: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("remote_write.ca_file: %s holds no certificate", c.CAFile)
		}
	}
	if c.CertFile != "" || c.KeyFile != "" {
		if _, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile); err != nil {
			return nil, fmt.Errorf("remote_write.cert_file: %w", err)
		}
		t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			cert, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile) // it may have been renewed
			return &cert, err
		}
	}
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: t, MaxIdleConnsPerHost: 1, IdleConnTimeout: 2 * time.Minute, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// authorize adds the credentials that files hold now.
func (c *RemoteWrite) authorize(r *http.Request) error {
	secret := func(path string) (string, error) {
		b, err := os.ReadFile(path)
		return strings.TrimSpace(string(b)), err
	}
	if c.Username != "" {
		password := ""
		if c.PasswordFile != "" {
			var err error
			if password, err = secret(c.PasswordFile); err != nil {
				return err
			}
		}
		r.SetBasicAuth(c.Username, password)
	}
	if c.BearerTokenFile != "" {
		token, err := secret(c.BearerTokenFile)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return nil
}
