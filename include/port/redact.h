/*
 * redact - keys, tokens and passwords in text, known by their shape, replaced by `[redacted KIND]`.
 *
 * Only what can hardly be anything else: prefixes that services give to their secrets so that they
 * are found (GitHub's "secret scanning", Slack's and GitLab's token overviews, AWS's "IAM
 * identifiers"), JSON Web Tokens (RFC 7519), private keys in PEM (RFC 7468), tokens behind `Bearer`
 * (RFC 6750), passwords in URLs (RFC 3986). A password that stands there without such a sign is not
 * found.
 *
 *     kind             shape
 *     anthropic-key    sk-ant-…
 *     api-key          sk-…, gsk_…, sk_live_…, rk_live_…, hf_…, npm_…, pypi-AgE…
 *     github-token     ghp_…, gho_…, ghu_…, ghs_…, ghr_…, github_pat_…
 *     gitlab-token     glpat-…
 *     aws-key          AKIA…, ASIA… (the id of a key; the secret has no shape)
 *     slack-token      xoxb-…, xoxp-… and others
 *     google-key       AIza…
 *     jwt              eyJ….eyJ….…
 *     private-key      -----BEGIN … PRIVATE KEY-----, up to its END or as far as it goes
 *     bearer-token     what follows `Bearer `
 *     password         scheme://user:PASSWORD@host
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
