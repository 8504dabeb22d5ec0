/*
 * redact - keys, tokens and passwords in text, known by their shape, replaced by `[redacted KIND]`.
 *
 * Only what can hardly be anything else: prefixes that services give to their secrets so that they
 * are found (GitHub's "secret scanning", Slack's and GitLab's token overviews, AWS's "IAM
 * identifiers"), JSON Web Tokens (RFC 7515, RFC 7516), private keys in PEM (RFC 7468), what stands
 * behind `Bearer` (RFC 6750), `Basic` (RFC 7617) and the names of some headers, passwords in URLs
 * (RFC 3986). A password that stands there without such a sign is not found.
 *
 *     kind             shape
 *     anthropic-key    sk-ant-…
 *     api-key          sk-…, gsk_…, csk-…, xai-…, pplx-…, nvapi-…, r8_…, fw_…, hf_…, lsv2_pt_…,
 *                      lsv2_sk_…, sk_live_…, rk_live_…, sk_test_…, rk_test_…, whsec_…, SG.…,
 *                      dop_v1_…, npm_…, pypi-AgE…; what follows `x-api-key:` and `Authorization:`
 *     github-token     ghp_…, gho_…, ghu_…, ghs_…, ghr_…, github_pat_…
 *     gitlab-token     glpat-…, glrt-…, gldt-…
 *     aws-key          AKIA…, ASIA… (the id of a key; the secret has no shape)
 *     slack-token      xapp-…, xoxb-…, xoxp-… and others
 *     slack-webhook    hooks.slack.com/…
 *     telegram-token   NUMBER:AA…
 *     google-key       AIza…, ya29.…, GOCSPX-…
 *     jwt              eyJ….eyJ….…, eyJ…. and four parts more
 *     private-key      -----BEGIN … PRIVATE KEY-----, up to its END or as far as it goes
 *     bearer-token     what follows `Bearer `
 *     basic-auth       what follows `Basic ` and is Base64 of USER:PASSWORD
 *     password         scheme://user:PASSWORD@host, scheme://TOKEN@host
 *
 * Each is found at the start of a word, a token behind `_` and `-` too, and behind what is an
 * escape in JSON, in URLs or on a terminal: `\u003d`, `%3D`, `ESC [32m`.
 */
#ifndef CHATHIST_PORT_REDACT_H
#define CHATHIST_PORT_REDACT_H

#include <stdbool.h>

#include "base/buf.h"

/* Adds text, with what is secret replaced and all else byte for byte. true when there was any. */
bool redact_text(struct str text, struct buf *out);
/* The same of a JSON value that json_check accepted, in its strings, member names included: it
 * stays valid, and a string without a secret stays byte for byte. */
bool redact_json(struct str json, struct buf *out);

#endif
