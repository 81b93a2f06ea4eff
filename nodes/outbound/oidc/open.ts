/**
 * Opens the port to the OpenID provider. The client of the protocol is loaded only at the first
 * sign-in, because most nodes never need it.
 */
import type { SignInProvider } from '../../../gateway/auth/console/provider.ts'
import type { Log } from '../../../gateway/ports.ts'
import type { OidcConfig } from '../../config/console.ts'
import type { Guard } from '../guard.ts'

/** Creates the port to the configured provider. */
export function openSignIn(
  guard: Guard,
  config: OidcConfig,
  parts: { readonly now: () => number; readonly log: Log },
): SignInProvider {
  let loaded: Promise<SignInProvider> | undefined
  const provider = (): Promise<SignInProvider> => {
    loaded ??= import('./provider.ts').then(({ createSignInProvider }) =>
      createSignInProvider(guard, config, parts),
    )
    return loaded
  }
  return {
    name: config.name,
    domains: config.domains,
    groups: config.roles,
    begin: async (...given) => (await provider()).begin(...given),
    finish: async (...given) => (await provider()).finish(...given),
  }
}
