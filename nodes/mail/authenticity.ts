/**
 * Authenticates the sender of a message: SPF (RFC 7208), DKIM (RFC 6376) and DMARC (RFC 7489). The
 * results are recorded, but not enforced. Conditions of triggers can test them.
 */
import { Resolver } from 'node:dns/promises'
import { domainToASCII } from 'node:url'
import { type AuthenticateResult, authenticate, type DNSResolver } from 'mailauth'
import { withLineEnds, withoutFields } from './raw-message.ts'

/**
 * The result of each check is one of the names that the standards define: `pass`, `fail`,
 * `softfail`, `neutral`, `none`, `policy`, `temperror`, `permerror`.
 */
export interface Authenticity {
  readonly spf: string
  /** The results of the first ten signatures, each with the domain that signed. */
  readonly dkim: readonly { readonly domain: string; readonly result: string }[]
  readonly dmarc: string
}

/** The data about the sender from the SMTP transaction. */
export interface Transaction {
  /** IP address of the client. */
  readonly ip: string
  readonly helo: string
  /** The address of `MAIL FROM`; empty for a bounce. */
  readonly sender: string
  /** Name of this server. */
  readonly mta: string
}
/** A parsed message. */
export interface Parsed {
  readonly raw: Buffer
  /** Length of the header block in bytes. */
  readonly header: number
  /** Address of the author. */
  readonly author: string
}

/** Maximum time in milliseconds for all DNS lookups of a message together. */
const TIMEOUT_MS = 5000
/** Maximum number of signatures of a message that are verified. */
const SIGNATURES = 10
/** Maximum length of a field `Received` in bytes. Parsing longer ones takes quadratic time. */
const MAX_RECEIVED_BYTES = 2048

/**
 * Creates a resolver that queries the given DNS servers (`address` or `address:port`), or those of
 * this machine if the list is empty.
 */
export function resolverOf(servers: readonly string[]): DNSResolver {
  const resolver = new Resolver({ timeout: 2000, tries: 2 })
  if (servers.length > 0) resolver.setServers(servers)
  return (name, type) => resolver.resolve(name, type) as Promise<string[][] | string[]>
}

/**
 * Authenticates a message. The promise never rejects. If the authentication fails or takes too
 * long, SPF and DMARC are `temperror`, and there are no DKIM results. DMARC is `permerror` if the
 * result refers to another author: the parsers of the address and of its domain are different, and
 * a hostile field `From` can have a different meaning for each.
 */
export async function authenticityOf(
  { raw, header, author }: Parsed,
  transaction: Transaction,
  resolver: DNSResolver,
): Promise<Authenticity> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((done) => {
    timer = setTimeout(() => done(undefined), TIMEOUT_MS)
  })
  try {
    const judged = authenticate(withLineEnds(relevant(raw, header)), {
      ...transaction,
      trustReceived: false,
      resolver,
      disableArc: true,
      disableBimi: true,
    })
    return shown(await Promise.race([judged, late]), author)
  } catch {
    return shown(undefined, author)
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Returns the message without the fields that are not verified. `mailauth` parses the fields of ARC
 * even if ARC is disabled, and their values can change the prototype of all objects.
 */
function relevant(raw: Buffer, header: number): Buffer {
  let signatures = 0
  return withoutFields(
    raw,
    header,
    (name, length) =>
      name.startsWith('arc-') ||
      (name === 'received' && length > MAX_RECEIVED_BYTES) ||
      (name === 'dkim-signature' && ++signatures > SIGNATURES),
  )
}

const shown = (judged: AuthenticateResult | undefined, author: string): Authenticity => ({
  spf: judged ? (judged.spf ? judged.spf.status.result : 'none') : 'temperror',
  dkim: (judged?.dkim.results ?? [])
    .filter(({ signingDomain }) => signingDomain)
    .slice(0, SIGNATURES)
    .map(({ signingDomain, status }) => ({ domain: signingDomain ?? '', result: status.result })),
  dmarc: judged ? dmarcOf(judged, author) : 'temperror',
})
function dmarcOf({ dmarc, dkim }: AuthenticateResult, author: string): string {
  if (!dmarc) return 'none'
  const domain = domainOf(author)
  return domain !== '' && domain === domainOf(dkim.headerFrom[0] ?? '')
    ? dmarc.status.result
    : 'permerror'
}
/** Returns the domain of an address in ASCII; empty if the address or its domain is not valid. */
function domainOf(address: string): string {
  const [, domain = ''] = /^[^@]+@([^@\s/?#\\:[\]]+)$/.exec(address) ?? []
  return domainToASCII(domain)
}
