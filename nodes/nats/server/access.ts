/**
 * How a process connects and authenticates to NATS servers. A permanent connection failure is
 * reported to the operator in one sentence, which names the setting to correct and contains no
 * secret.
 */
import {
  type Authenticator,
  AuthorizationError,
  credsAuthenticator,
  nkeyAuthenticator,
  type TlsOptions,
  tokenAuthenticator,
  UserAuthenticationExpiredError,
  usernamePasswordAuthenticator,
} from '@nats-io/transport-node'

/**
 * Credentials of a client. `seed` belongs to a user's key pair; `creds` is the text of a
 * credentials file.
 */
export type Credentials =
  | { readonly type: 'password'; readonly user: string; readonly password: string }
  | { readonly type: 'token'; readonly token: string }
  | { readonly type: 'nkey'; readonly seed: string }
  | { readonly type: 'creds'; readonly creds: string }

export interface Access {
  readonly servers: readonly string[]
  readonly credentials?: Credentials
  /**
   * Paths of PEM files: the CA of the servers' certificates, and this client's certificate and key.
   */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string }
  /** JetStream domain; the servers' own domain when absent. */
  readonly domain?: string
  /** Prefix of the names of subjects, streams and buckets; no prefix when absent. */
  readonly prefix?: string
}

/** The environment variables that set each type of credentials. */
const settingsOf: Readonly<Record<Credentials['type'], string>> = {
  password: 'BATON_NATS_USER and BATON_NATS_PASSWORD',
  token: 'BATON_NATS_TOKEN',
  nkey: 'BATON_NATS_NKEY',
  creds: 'BATON_NATS_CREDS',
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Returns the authenticator for the credentials. */
export function authenticatorOf(credentials: Credentials): Authenticator {
  switch (credentials.type) {
    case 'password':
      return usernamePasswordAuthenticator(credentials.user, credentials.password)
    case 'token':
      return tokenAuthenticator(credentials.token)
    case 'nkey':
      return nkeyAuthenticator(bytes(credentials.seed))
    case 'creds':
      return credsAuthenticator(bytes(credentials.creds))
  }
}

/**
 * Returns the TLS options. With options, even empty ones, the client library sends credentials only
 * to a server that offers TLS, also when it reconnects. Returns undefined when no TLS file is set
 * and no address begins with `tls://`. The connection then uses TLS if the server offers or
 * requires it. Without `ca`, the CAs of the system are trusted.
 */
export const tlsOf = ({ servers, tls }: Access): TlsOptions | undefined =>
  tls || servers.some((server) => server.startsWith('tls://'))
    ? {
        ...(tls?.ca !== undefined && { caFile: tls.ca }),
        ...(tls?.cert !== undefined && { certFile: tls.cert }),
        ...(tls?.key !== undefined && { keyFile: tls.key }),
      }
    : undefined

/** Joins the codes and messages of an error and its causes into one text. */
function messagesOf(error: unknown): string {
  const texts: string[] = []
  for (let at = error; at instanceof Error && texts.length < 5; at = at.cause)
    texts.push(`${(at as NodeJS.ErrnoException).code ?? ''} ${at.message}`.trim())
  return texts.join('; ')
}

/** Whether the server rejected the credentials, so that a retry cannot succeed. */
const isRefused = (error: unknown): boolean =>
  error instanceof AuthorizationError ||
  error instanceof UserAuthenticationExpiredError ||
  (error instanceof Error && error.cause !== undefined && isRefused(error.cause))

/**
 * Matches the TLS alerts by which a server rejects its client's certificate (RFC 8446, section
 * 6.2).
 */
const REFUSED_CERTIFICATE =
  /certificate[ _]required|handshake failure|alert ((bad |unsupported )?certificate|unknown ca)/i

/**
 * If a connection failure is permanent, returns a message that states what the operator must
 * correct. Returns undefined if a retry may succeed.
 */
export function lastingFailure(access: Access, error: unknown): string | undefined {
  const { servers, credentials, tls } = access
  const where = servers.join(', ')
  const text = messagesOf(error)
  if (isRefused(error)) {
    const refused = credentials
      ? `rejects the credentials of ${settingsOf[credentials.type]}: correct them`
      : tls?.cert !== undefined
        ? 'has no user for the certificate in BATON_NATS_CERT: use a certificate that its configuration maps to a user'
        : 'requires credentials: set BATON_NATS_CREDS, BATON_NATS_NKEY, BATON_NATS_TOKEN, ' +
          'or BATON_NATS_USER and BATON_NATS_PASSWORD'
    return `The NATS server at ${where} ${refused}.`
  }
  if (REFUSED_CERTIFICATE.test(text))
    return (
      `The NATS server at ${where} ${tls?.cert === undefined ? 'requires a' : 'rejects the'} ` +
      'client certificate: set BATON_NATS_CERT and BATON_NATS_KEY to one that it accepts.'
    )
  if (/self.signed|unable to (verify|get)|UNABLE_TO|altname|CERT_/i.test(text))
    return (
      `The certificate of the NATS server at ${where} is not trusted (${text}): ` +
      'set BATON_NATS_CA to the file of its certificate authority, ' +
      'and use the host name of the certificate in BATON_NATS.'
    )
  if (/does not support 'tls'/.test(text))
    return (
      `The NATS server at ${where} does not offer TLS, which an address with tls:// and the settings ` +
      'BATON_NATS_CA, BATON_NATS_CERT and BATON_NATS_KEY require. Enable TLS there, or change them.'
    )
  if (credentials && /seed|nkey|checksum|creds|unable to parse/i.test(text))
    return `${settingsOf[credentials.type]} cannot be used: ${text}.`
  if (/\bENOENT\b|\bEACCES\b|PEM|no start line/i.test(text) && tls)
    return `A file of BATON_NATS_CA, BATON_NATS_CERT or BATON_NATS_KEY cannot be used: ${text}.`
  return undefined
}

/** Returns the message for the operator when no server answered in time. */
export const unreachableMessage = ({ servers }: Access, error: unknown): string =>
  `No NATS server answers at ${servers.join(', ')} (${messagesOf(error)}). Start it, or correct BATON_NATS.`
