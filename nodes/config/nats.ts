/** Combines the settings for reaching NATS servers into one value. */
import type { Access } from '../nats/server/access.ts'
import type { Values } from './settings.ts'

/**
 * Returns the credentials, TLS, domain and prefix for the servers, or a message when settings
 * contradict each other or are incomplete.
 */
export function natsAccessOf(values: Values): Omit<Access, 'servers'> | string {
  const {
    BATON_NATS_USER: user,
    BATON_NATS_PASSWORD: password,
    BATON_NATS_TOKEN: token,
    BATON_NATS_NKEY: seed,
    BATON_NATS_CREDS: creds,
    BATON_NATS_CA: ca,
    BATON_NATS_CERT: cert,
    BATON_NATS_KEY: key,
    BATON_NATS_DOMAIN: domain,
    BATON_NATS_PREFIX: prefix,
  } = values
  // A setting with a fault is absent. Its fault is reported, so that it does not count as missing.
  const parsed = (...names: (keyof Values)[]) => names.every((name) => name in values)
  if (
    (user === undefined) !== (password === undefined) &&
    parsed('BATON_NATS_USER', 'BATON_NATS_PASSWORD')
  )
    return 'BATON_NATS_USER and BATON_NATS_PASSWORD must be set together: set both or neither'
  if ((cert === undefined) !== (key === undefined) && parsed('BATON_NATS_CERT', 'BATON_NATS_KEY'))
    return 'BATON_NATS_CERT and BATON_NATS_KEY must be set together: set both or neither'
  if ([user, token, seed, creds].filter((one) => one !== undefined).length > 1)
    return (
      'BATON_NATS_USER, BATON_NATS_TOKEN, ' +
      'BATON_NATS_NKEY and BATON_NATS_CREDS are mutually exclusive: set only one of them'
    )
  return {
    ...(user !== undefined &&
      password !== undefined && { credentials: { type: 'password', user, password } }),
    ...(token !== undefined && { credentials: { type: 'token', token } }),
    ...(seed !== undefined && { credentials: { type: 'nkey', seed } }),
    ...(creds !== undefined && { credentials: { type: 'creds', creds } }),
    ...((ca ?? cert) !== undefined && {
      tls: {
        ...(ca !== undefined && { ca }),
        ...(cert !== undefined && { cert }),
        ...(key !== undefined && { key }),
      },
    }),
    ...(domain !== undefined && { domain }),
    ...(prefix !== undefined && { prefix }),
  }
}
