/**
 * Providers that other services offer over HTTP, such as an adapter of a hosted sandbox. This
 * module translates the provider port into the requests of docs/operations/providers.md. The
 * service keeps all state of the provider, so each host with a provider of this name serves all of
 * its environments.
 *
 * Invariants:
 * A1. This host reports the end of a worker once, when `inspect` finds that the worker has ended,
 *     or that the worker or its environment no longer exists. An inspection is ignored for workers
 *     that were started after its request was sent.
 */
import { createHash } from 'node:crypto'
import { type Static, Type } from 'typebox'
import { every } from '../../../gateway/timing.ts'
import type { EnvironmentLimits } from '../../config/environments.ts'
import type { Clock } from '../../host/ports.ts'
import type { Post } from '../../outbound/post.ts'
import { secretsOf } from '../conceal.ts'
import { isLoopback } from '../loopback.ts'
import { type Presence, type Provider, ProviderFault, type WorkerExit } from '../provider.ts'
import { createClient } from './client.ts'

export interface HttpProviderOptions {
  readonly name: string
  readonly url: string
  readonly secret: string
  /** URL at which workers of the service reach a gateway. */
  readonly gateway_url: string
  readonly installation: string
  readonly limits: EnvironmentLimits
  readonly clock: Pick<Clock, 'now' | 'later'>
  readonly post: Post
}

/** Milliseconds between two inspections while this host follows workers. */
const LOOK_MS = 5000
/** Maximum number of pages of one inspection. */
const MAX_PAGES = 1000

const Done = Type.Object({})
const Log = Type.Object({ content: Type.String(), truncated: Type.Optional(Type.Boolean()) })
const Found = Type.Object({
  project: Type.String(),
  environment_id: Type.String(),
  worker: Type.Optional(
    Type.Object({
      generation: Type.Integer({ minimum: 0 }),
      running: Type.Boolean(),
      exit_code: Type.Optional(Type.Integer()),
      error: Type.Optional(Type.String({ maxLength: 1000 })),
    }),
  ),
})
type Found = Static<typeof Found>
const Page = Type.Object({
  environments: Type.Array(Found),
  next_cursor: Type.Optional(Type.String({ minLength: 1 })),
})

interface Followed {
  readonly project: string
  readonly generation: number
}

/**
 * Creates a provider, or returns why it is unavailable. The service is not contacted until a method
 * of the provider is called.
 */
export function createHttpProvider(
  options: HttpProviderOptions,
): Provider | { readonly unavailable: string } {
  const { name, url, gateway_url, installation, limits, clock } = options
  if (isLoopback(gateway_url) && !isLoopback(url))
    return {
      unavailable:
        `Workers of the service at ${url} cannot reach the gateway at ${gateway_url}. Set ` +
        'gateway_url of the provider in BATON_HTTP_PROVIDERS, or BATON_GATEWAY_URL.',
    }
  const client = createClient(options)
  /** The workers whose end this host reports, by environment. */
  const followed = new Map<string, Followed>()
  let listener: (exit: WorkerExit) => void = () => {}
  let looking = false
  let closed = false

  async function inspect(): Promise<readonly Found[]> {
    const before = new Map(followed)
    const found: Found[] = []
    let cursor: string | undefined
    for (let page = 0; ; page++) {
      if (page === MAX_PAGES)
        throw new ProviderFault(`The provider ${name} returned an endless list.`)
      const body = { installation, ...(cursor !== undefined && { cursor }) }
      const answer = await client.call('inspect', { body, answer: Page })
      found.push(...(answer?.environments ?? []))
      cursor = answer?.next_cursor
      if (cursor === undefined) break
    }
    const byId = new Map(found.map((one) => [one.environment_id, one]))
    for (const [id, one] of before)
      if (followed.get(id) === one) judge(id, one, byId.get(id)?.worker)
    for (const { environment_id: id, project, worker } of found)
      if (worker?.running && followed.get(id) === undefined && !before.has(id))
        followed.set(id, { project, generation: worker.generation })
    return found
  }
  /** Reports the end of a followed worker, if it has ended. */
  function judge(environment_id: string, one: Followed, worker: Found['worker']): void {
    const { project, generation } = one
    if (worker?.running && worker.generation === generation) return
    followed.delete(environment_id)
    if (closed) return
    const same = worker?.generation === generation ? worker : undefined
    listener({
      project,
      environment_id,
      generation,
      idle: same?.exit_code === 0,
      ...(same?.exit_code !== undefined && { exit_code: same.exit_code }),
      ...(same?.error !== undefined && { error: same.error }),
      ...(!same && { error: `The provider ${name} does not have the worker any more.` }),
    })
  }
  const look = async (): Promise<void> => {
    if (looking || followed.size === 0) return
    looking = true
    // A failure is ignored here, because the regular inspections of the host report it.
    await inspect().catch(() => {})
    looking = false
  }
  const stopLooking = every(clock, LOOK_MS, () => void look())

  return {
    name,
    place: `http/${name}`,
    isolation: `Provided by the service at ${new URL(url).origin}.`,
    async provision(task, signal) {
      const { environment_id, operation, project, template_id, runtime_version } = task
      const body = {
        installation,
        environment_id,
        operation,
        project,
        name: task.name,
        limits,
        ...(template_id !== undefined && { template_id }),
        ...(runtime_version !== undefined && { runtime_version }),
      }
      const key = `${environment_id}/create/${operation}`
      await client.call('create', { body, answer: Done, key, signal })
    },
    async startWorker(task, launch, signal) {
      const { environment_id, operation, project } = task
      const of = { installation, environment_id, operation }
      const key = (what: string) => `${environment_id}/${what}/${operation}`
      // A host that claims the operation again creates a new credential, which is one of the
      // variables. The idempotency key therefore contains a hash of the variables.
      const version = createHash('sha256').update(JSON.stringify(launch.variables)).digest('hex')
      // The service ends an earlier worker, whose end is expected and not reported.
      followed.delete(environment_id)
      await client.call('wake', { body: of, answer: Done, key: key('wake'), signal })
      const { generation, command, allowed_hosts } = launch
      const body = {
        ...of,
        generation,
        ...(command && { command }),
        variables: { ...launch.variables, [launch.url_variable]: gateway_url },
        workspace_variable: launch.workspace_variable,
        log_variable: launch.log_variable,
        allowed_hosts,
      }
      const secrets = secretsOf(launch)
      const execKey = `${key('exec')}/${version.slice(0, 16)}`
      await client.call('exec', { body, answer: Done, key: execKey, signal, secrets })
      followed.set(environment_id, { project, generation })
    },
    async destroy(environment_id) {
      followed.delete(environment_id)
      // The request has no idempotency key: an environment can be created again with the same id,
      // and the service must not mistake its removal for a repeat of the earlier one.
      const body = { installation, environment_id }
      await client.call('destroy', { body, answer: Done, missing: true })
    },
    async logs(environment_id, request) {
      const found = await client.call('logs', {
        body: { installation, environment_id, ...request },
        answer: Log,
        missing: true,
        max_bytes: 8 * request.max_bytes + 4096,
      })
      return found && { content: found.content, truncated: found.truncated ?? false }
    },
    inspect: async () =>
      (await inspect()).map(
        ({ project, environment_id, worker }): Presence => ({
          project,
          environment_id,
          ...(worker?.running && { generation: worker.generation }),
        }),
      ),
    onExit: (on) => {
      listener = on
    },
    async close() {
      closed = true
      stopLooking()
    },
  }
}
