/**
 * A gateway for uploads of artifacts, in memory, which fails at its n-th step. Each call to a port,
 * and each arrival of bytes, consists of two steps: one before and one after it takes effect.
 */
import { createHash } from 'node:crypto'
import type { Call, Edge } from '../../../gateway/call.ts'
import { receiveArtifact } from '../../../gateway/commands/artifacts/upload.ts'
import { createUploadTurns } from '../../../gateway/files/upload.ts'
import type { Files, World } from '../../../gateway/ports.ts'
import { api } from '../../../protocol/api.ts'
import { refuse } from '../../../protocol/errors.ts'
import { fake, fakeWorld } from '../../support/fake-world.ts'

/**
 * How a gateway fails. `dies`: its pending calls are never answered, and its timers stop. `fails`:
 * one call has an unknown outcome, one call to the store throws, or the connection breaks; the
 * gateway continues.
 */
export type Failure = 'dies' | 'fails'

/** Files in memory. A file is visible once all of its bytes have arrived. */
export class MemoryFiles implements Files {
  readonly values = new Map<string, Uint8Array>()
  async put(name: string, bytes: Uint8Array): Promise<void> {
    this.values.set(name, bytes)
  }
  async get(name: string): Promise<Uint8Array | undefined> {
    return this.values.get(name)
  }
  async write(name: string, source: AsyncIterable<Uint8Array>) {
    const chunks: Uint8Array[] = []
    for await (const chunk of source) chunks.push(chunk)
    const bytes = Buffer.concat(chunks)
    this.values.set(name, bytes)
    return { size_bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
  }
  async read(): Promise<undefined> {}
  async delete(name: string): Promise<void> {
    this.values.delete(name)
  }
}

const BOUNDARY = 'b'
/** Returns the form of an upload in chunks. The field `name` comes last. */
const formOf = (bytes: Buffer): readonly Buffer[] => [
  Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n`),
  bytes.subarray(0, bytes.length >> 1),
  bytes.subarray(bytes.length >> 1),
  Buffer.from(
    `\r\n--${BOUNDARY}\r\nContent-Disposition: form-data; name="name"\r\n\r\nfile` +
      `\r\n--${BOUNDARY}--\r\n`,
  ),
]

export interface Sent {
  readonly project: string
  readonly bytes: Buffer
  readonly key?: string
  readonly lease?: string
}
interface FailingGateway {
  steps(): number
  dead(): boolean
  upload(sent: Sent): ReturnType<typeof receiveArtifact>
}

/** Creates a gateway that fails at step `at`, or never if `at` is 0. */
export function failingGateway(
  base: World,
  files: Files,
  at: number,
  failure: Failure,
): FailingGateway {
  let steps = 0
  const dead = () => failure === 'dies' && at > 0 && steps >= at
  const never = new Promise<never>(() => {})
  /**
   * Takes a step. Returns whether the call fails at this step. Never resolves if the gateway is
   * dead.
   */
  const step = async (): Promise<boolean> => {
    if (at === 0 || !dead()) steps++
    return dead() ? never : steps === at
  }
  const port =
    <A extends unknown[], R>(call: (...args: A) => Promise<R>, failed: () => R) =>
    async (...args: A): Promise<R> => {
      if (await step()) return failed()
      const result = await call(...args)
      return (await step()) ? failed() : result
    }
  const unknown = () => refuse('service_unavailable') as never
  const broken = () => {
    throw new Error('the store does not answer')
  }
  const store: Files = {
    put: port((...args) => files.put(...args), broken),
    get: port((...args) => files.get(...args), broken),
    write: port((...args) => files.write(...args), broken),
    read: port((...args) => files.read(...args), broken),
    delete: port((...args) => files.delete(...args), broken),
  }
  const world = fakeWorld({
    ...base,
    files: store,
    command: port(base.command as (command: never) => Promise<never>, unknown),
    ask: port(base.ask as (...args: never[]) => Promise<never>, unknown),
    later: (ms: number, run: () => void) =>
      base.later(ms, () => {
        if (!dead()) run()
      }),
  })
  const caller = {
    principal: { type: 'user', id: 'user_1' },
    credential: { type: 'api_key', id: 'key_1' },
    scope: { kind: 'organization', role: 'owner' },
    permissions: new Set(['project.edit', 'work.execute']),
    proof: { hash: '', tag: '' },
  }
  const edge = (project: string) =>
    fake<Edge>('edge', {
      world,
      uploadTurns: createUploadTurns(world),
      sessionVisibility: fake<Edge['sessionVisibility']>('sessionVisibility', {}),
      authentication: { again: port(async () => caller as never, unknown) },
      directory: {
        organization: port(
          async () => ({ projects: { [project]: { id: project } }, handles: {} }) as never,
          unknown,
        ),
      },
    })
  async function* arriving(bytes: Buffer): AsyncGenerator<Buffer> {
    for (const chunk of formOf(bytes)) {
      if (await step()) throw new Error('the connection broke')
      yield chunk
    }
  }
  return {
    steps: () => steps,
    dead,
    upload: ({ project, bytes, key, lease }) => {
      const headers = {
        'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
        ...(key !== undefined && { 'idempotency-key': key }),
      }
      const call = {
        name: 'artifact.create',
        row: api['artifact.create'],
        slots: { project },
        query: {},
        body: {},
        caller,
        project: { id: project },
        request_id: 'req_1',
        incoming: {
          method: 'POST',
          ip: '',
          header: (name: keyof typeof headers) => headers[name],
          further: () => lease,
          upload: { chunks: () => arriving(bytes), discard: async () => {} },
        },
      }
      return receiveArtifact(edge(project), call as unknown as Call)
    },
  }
}
