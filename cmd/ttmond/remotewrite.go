package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/remotewrite"
)

// remoteWriteConfig is one engine that samples are sent to.
type remoteWriteConfig struct {
	URL             string            `toml:"url"`
	Interval        duration          `toml:"interval"`
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

func (c *remoteWriteConfig) check() error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("remote_write.url: %q is no address like https://prometheus.example.org/api/v1/write", c.URL)
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

func (c *remoteWriteConfig) client() (*http.Client, error) {
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
func (c *remoteWriteConfig) authorize(r *http.Request) error {
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

// runRemotes sends to every engine. Each follows the snapshots by itself.
func (d *ttmond) runRemotes(ctx context.Context, g *errgroup.Group) {
	for _, s := range d.remotes {
		g.Go(func() error { s.Run(ctx); return nil })
		g.Go(func() error {
			d.collector.feed.Follow(ctx, func(*model.Snapshot) {
				if snap, walk := d.recorder.last(); snap != nil {
					s.Take(snap.Time, walk)
				}
			})
			return nil
		})
	}
}

// prepareRemotes makes the senders.
func (d *ttmond) prepareRemotes() {
	for i := range d.cfg.RemoteWrite {
		c := &d.cfg.RemoteWrite[i]
		client, err := c.client()
		if err != nil {
			d.log.Error("remote write is off", "err", err)
			continue
		}
		external := map[string]string{"host": d.hostName()}
		for k, v := range c.Labels {
			external[k] = v
		}
		h := fnv.New32a()
		h.Write([]byte(c.URL))
		d.remotes = append(d.remotes, remotewrite.New(remotewrite.Options{
			URL: c.URL, V2: c.Protocol == "2.0", Interval: c.Interval.Duration, External: external, Headers: c.Headers,
			Dir: filepath.Join(d.cfg.StateDir, "remote-write", fmt.Sprintf("%08x", h.Sum32())), MaxBytes: int64(c.BufferMB) << 20,
			Client: client, Authorize: c.authorize, Log: d.log,
		}))
	}
}
