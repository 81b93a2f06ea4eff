/**
 * Checks the names of providers in requests. A definition may also specify `worker`. The jobs of
 * its environment are then performed by a worker that registers for the environment.
 */
import { type Refusal, refuseFields } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import { below } from '../../../protocol/rules/workflow-check/path.ts'
import type { Spec } from '../../../protocol/workflows/spec.ts'
import type { GatewaySettings } from '../../ports.ts'

type Configured = Pick<GatewaySettings, 'environments'>
type Providers = NonNullable<GatewaySettings['environments']>
/** The providers of an installation without configured providers. */
const defaultProviders: Providers = {
  default_provider: 'local',
  providers: ['local'],
  aliases: { sprites: 'local', cloudflare_containers: 'local' },
}
/**
 * The provider name of environments that workers attach. Clients cannot create such an environment.
 */
const ATTACHED = 'worker'

/** Resolves the name or alias of a provider. Without a name, returns the default provider. */
export function resolveProvider(
  { environments: { default_provider, providers, aliases } = defaultProviders }: Configured,
  name: string | undefined,
): string | Refusal {
  if (name === undefined) return default_provider
  const provider = getOwn(aliases, name) ?? name
  return provider !== ATTACHED && providers.includes(provider)
    ? provider
    : refuseFields({
        field: 'provider',
        message: 'is not a provider of this installation',
        expected: { enum: [...providers, ...Object.keys(aliases)] },
        actual: name,
      })
}

/**
 * Refuses a definition whose policy specifies a provider that this installation does not have.
 * @param path path of the definition in the request.
 */
export function refuseProvider(
  { environments: { providers, aliases } = defaultProviders }: Configured,
  { defaults }: Pick<Spec, 'defaults'>,
  path = '',
): Refusal | undefined {
  const actual = defaults?.environment?.provider
  const known = [...providers, ATTACHED, ...Object.keys(aliases)]
  return actual === undefined || known.includes(actual)
    ? undefined
    : refuseFields({
        field: below(below(below(path, 'defaults'), 'environment'), 'provider'),
        message: 'is not a provider of this installation',
        expected: { enum: known },
        actual,
      })
}
