/**
 * The place of the `docker` provider, which identifies an engine for an installation. It is a
 * random label of a volume, because Podman's API returns a different engine id for each request.
 */
import type { EnvironmentLimits } from '../../config/environments.ts'
import { label } from './container.ts'
import { type Engine, parseResponse } from './engine.ts'

interface Info {
  readonly MemoryLimit?: boolean
  readonly CpuCfsQuota?: boolean
  readonly PidsLimit?: boolean
}
interface Version {
  readonly Version: string
  readonly Components?: readonly { readonly Name: string }[]
}
interface PlaceSettings {
  readonly installation: string
  readonly network?: string
  readonly limits: EnvironmentLimits
  /** Generates the random part of the name of a new place. */
  random(): string
}

/**
 * Returns the name of the place, and the isolation that the engine provides.
 * @throws ProviderFault when the engine does not respond.
 */
export async function openPlace(
  engine: Engine,
  settings: PlaceSettings,
): Promise<{ readonly place: string; readonly isolation: string }> {
  const { installation } = settings
  const info = parseResponse<Info>(await engine.call('GET', '/info'))
  const version = parseResponse<Version>(await engine.call('GET', '/version'))
  const name = `baton-place-${installation}`
  const labels = { [label.installation]: installation, [label.place]: settings.random() }
  // If the volume exists already, the engine keeps it with its labels.
  await engine.call('POST', '/volumes/create', { body: { Name: name, Labels: labels } })
  const volume = parseResponse<{ readonly Labels: Readonly<Record<string, string>> }>(
    await engine.call('GET', `/volumes/${name}`),
  )
  return {
    place: `docker/${volume.Labels[label.place]}`,
    isolation: isolationOf(info, version, settings),
  }
}

function isolationOf(info: Info, version: Version, { limits, network }: PlaceSettings): string {
  const memory = `memory ${Math.round(limits.memory_bytes / 1024 ** 2)} MiB`
  const all = [
    [info.MemoryLimit !== false, memory, 'memory'],
    [info.CpuCfsQuota !== false, `processors ${limits.cpus}`, 'processors'],
    [info.PidsLimit !== false, `processes ${limits.processes}`, 'processes'],
    [false, '', 'size of files'],
  ] as const
  const limited = all.flatMap(([holds, limit]) => (holds ? [limit] : []))
  const unlimited = all.flatMap(([holds, , what]) => (holds ? [] : [what]))
  const engine = version.Components?.some(({ Name }) => /podman/i.test(Name)) ? 'Podman' : 'Docker'
  return (
    `Container of ${engine} ${version.Version} with a read-only system and without capabilities; ` +
    `limits: ${limited.join(', ') || 'none'}; not limited: ${unlimited.join(', ')}; ` +
    `network: ${network ?? "the engine's default"}, not filtered.`
  )
}
