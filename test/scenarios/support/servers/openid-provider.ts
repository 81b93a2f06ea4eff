/**
 * An OpenID provider on loopback (`oidc-provider`). A sign-in shows no page, because the provider
 * signs in the person whom the test has chosen.
 */
import { generateKeyPairSync } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'

/** The members of the provider's ID token class with which the tests forge claims. */
interface IdToken {
  extra: Record<string, unknown>
  client: object
  issue(...given: unknown[]): Promise<string>
}
/** A person with an account at the provider. */
export interface Somebody {
  readonly sub: string
  readonly name: string
  readonly email: string
  readonly email_verified: boolean
  readonly groups: readonly string[]
}
export interface OpenIdProvider {
  readonly issuer: string
  /** The person who signs in. If undefined, the sign-in is refused. */
  person: Somebody | undefined
  /** A wrong audience or nonce for the ID tokens, to test that both are checked. */
  forged: { readonly audience?: string; readonly nonce?: string } | undefined
  /**
   * Follows the redirects of the provider from an authorization URL to the callback of the client,
   * and returns the address of the callback.
   */
  authorize(url: string): Promise<string>
  stop(): Promise<void>
}

/**
 * Starts a provider with the client `baton`, which authenticates with a secret. Each provider has a
 * new signing key.
 * @param port by default, any free port.
 */
export async function openIdProvider(
  secret: string,
  redirect_uris: string[],
  port = 0,
): Promise<OpenIdProvider> {
  const server: Server = createServer()
  await new Promise<void>((listening) => server.listen(port, '127.0.0.1', listening))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const self: OpenIdProvider = {
    issuer,
    person: undefined,
    forged: undefined,
    authorize: async (url) => {
      const jar = new Map<string, string>()
      for (let next = url, hops = 0; hops < 10; hops++) {
        const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
        const answer = await fetch(next, { redirect: 'manual', headers: { cookie } })
        await answer.arrayBuffer()
        for (const set of answer.headers.getSetCookie()) {
          const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
          jar.set(name, value)
        }
        const location = answer.headers.get('location')
        if (location === null) throw new Error(`the provider answered ${answer.status} at ${next}`)
        next = new URL(location, next).href
        if (!next.startsWith(issuer)) return next
      }
      throw new Error('the provider redirects endlessly')
    },
    stop: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
  const provider = new Provider(issuer, {
    clients: [{ client_id: 'baton', client_secret: secret, redirect_uris }],
    claims: { openid: ['sub'], profile: ['name', 'groups'], email: ['email', 'email_verified'] },
    jwks: {
      keys: [
        generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }),
      ],
    },
    cookies: { keys: ['a key of this test'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    findAccount: (_, sub) => ({
      accountId: sub,
      claims: async () => ({ ...self.person, groups: [...(self.person?.groups ?? [])], sub }),
    }),
    loadExistingGrant: async (ctx) => {
      const grant = new provider.Grant({
        clientId: ctx.oidc.client?.clientId ?? '',
        accountId: ctx.oidc.session?.accountId ?? '',
      })
      grant.addOIDCScope('openid profile email')
      await grant.save()
      return grant
    },
  })
  const { prototype } = provider.IdToken as unknown as { prototype: IdToken }
  const { issue } = prototype
  prototype.issue = function (...given) {
    const { audience, nonce } = self.forged ?? {}
    if (nonce !== undefined) this.extra['nonce'] = nonce
    if (audience !== undefined)
      this.client = Object.create(this.client, { clientId: { value: audience } })
    return issue.apply(this, given)
  }
  const callback = provider.callback()
  server.on('request', (req, res) => {
    if (!req.url?.startsWith('/interaction/')) return void callback(req, res)
    const result = self.person
      ? { login: { accountId: self.person.sub } }
      : { error: 'access_denied', error_description: 'The person refused.' }
    void provider.interactionFinished(req, res, result, { mergeWithLastSubmission: false })
  })
  return self
}
