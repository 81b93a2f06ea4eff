/**
 * Hostile content that comes from other systems: from a receiver of webhooks and from an OpenID
 * provider.
 */

import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import type { Service } from '../../../support/service.ts'
import type { OpenIdProvider } from '../../support/servers/openid-provider.ts'
import { BIDI, HTML, hostileText } from './texts.ts'

/**
 * Starts a receiver that answers every request with status 500 and hostile texts in all parts of
 * the response.
 */
export async function hostileReceiver(mark: number) {
  const answer = [
    `HTTP/1.1 500 ${HTML} ${BIDI}`,
    'Content-Type: text/html',
    `Refresh: 0;url=javascript:hacked()`,
    `X-Note: ${HTML} ${BIDI}`,
    'Connection: close',
    '',
    hostileText(mark),
  ].join('\r\n')
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(answer))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    stop: () => new Promise((done) => server.close(done)),
  }
}

/** Returns the settings of a service in which people can sign in with an OpenID provider. */
export const signInSettings = (issuer: string, port: number, secret: string) => ({
  BATON_PORT: String(port),
  BATON_OIDC_ISSUER: issuer,
  BATON_OIDC_CLIENT_ID: 'baton',
  BATON_OIDC_CLIENT_SECRET: secret,
  BATON_OIDC_ROLES: JSON.stringify({ '*': { '*': 'Viewer' } }),
})
/**
 * Signs in a person with a hostile name, address, id and group. Returns the HTTP status of the last
 * response.
 */
export async function signInHostile(
  s: Service,
  provider: OpenIdProvider,
  mark: number,
): Promise<number> {
  provider.person = {
    sub: `q${mark + 2}q<b/onclick=hacked()>`,
    name: hostileText(mark, 128),
    email: `q${mark + 1}q<img/src=x/onerror=hacked()>z${mark + 1}z@evil.invalid`,
    email_verified: true,
    groups: [HTML, BIDI, '__proto__'],
  }
  const begun = await s.raw('GET', '/auth/oidc/start?return=/', { key: null })
  const [cookie = ''] = begun.headers.getSetCookie()
  const { pathname, search } = new URL(
    await provider.authorize(begun.headers.get('location') ?? ''),
  )
  const ended = await s.raw('GET', pathname + search, {
    key: null,
    headers: { cookie: cookie.split(';')[0] ?? '', 'sec-fetch-site': 'cross-site' },
  })
  return ended.headers.get('location') === '/' ? ended.status : 0
}
