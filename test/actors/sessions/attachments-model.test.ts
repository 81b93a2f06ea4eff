/**
 * Random orders of uploads, deletions and the end of a session, with gateways that fail at any
 * point. The organization receives direct messages late, repeatedly, out of order or never. The
 * effects of artifacts arrive late but in order. A gateway stores bytes only until the session
 * abandons the upload. Invariants: a file of the session and its artifact always agree. After all
 * deliveries, the used quota is exactly that of the stored files, and exactly these files have
 * bytes. The used quota never becomes negative, and never rises above its limit.
 */
import fc from 'fast-check'
import t from 'tap'
import { defineActor } from '../../../actors/actor.ts'
import { organizationActor } from '../../../actors/projects/organization/organization.ts'
import type { ArtifactQuota } from '../../../protocol/artifacts/schema.ts'
import type { SessionFile } from '../../../protocol/sessions/attachments.ts'
import { given, type Scene } from '../../support/given.ts'
import { uploadSizes, uploadSteps } from '../artifacts/upload-steps.ts'
import { begun, type Story, say } from './story.ts'

const LIMIT = 100
const UPLOADS = 4
const organization = defineActor(organizationActor({ brand: 'Service', artifact_quota: LIMIT }))
const owner = { id: 'user_1', admin: false }
interface Message {
  readonly name: string
  readonly input: Readonly<Record<string, unknown>>
}
/** Progress of an upload at its gateway. `gone`: the gateway failed or has answered. */
interface Upload {
  stage: 'new' | 'announced' | 'admitted' | 'stored' | 'gone'
  readonly size: number
  readonly key: string | undefined
  id: string
  expires_at: number
}
const fileName = (id: string): string => `file/prj_1/${id}`

class World {
  readonly story: Story = begun()
  organization: Scene<never> = given<never>(organization)
  readonly uploads: readonly Upload[]
  readonly store = new Set<string>()
  /** Direct messages. Each may be delivered at any time and more than once. */
  readonly direct: Message[] = []
  constructor(uploads: readonly Pick<Upload, 'size' | 'key'>[]) {
    this.story.answers(say('x'))
    this.uploads = uploads.map((one) => ({ ...one, stage: 'new', id: '', expires_at: 0 }))
  }
  #reply<T>(): T {
    return this.story.last?.reply as T
  }
  quota(): Omit<ArtifactQuota, 'generated_at'> {
    return this.organization.ask('artifact_quota') as Omit<ArtifactQuota, 'generated_at'>
  }
  deliver({ name, input }: Message): string | undefined {
    const before = this.quota()
    const done = this.organization.when(name, input, { at: this.story.at })
    this.organization = done
    const { used_bytes, artifact_count } = this.quota()
    if (used_bytes < 0 || artifact_count < 0) throw new Error('a negative quota')
    if (used_bytes > LIMIT && used_bytes > before.used_bytes) throw new Error('over the limit')
    return done.refused?.refused
  }
  send(name: string, input: Message['input']): string | undefined {
    this.direct.push({ name, input })
    return this.deliver({ name, input })
  }
  perform(twice: boolean): void {
    const effect = this.story.artifactEffects.shift()
    for (const _ of effect && twice ? [1, 2] : [1]) {
      if (effect && 'erase' in effect) for (const name of effect.erase) this.store.delete(name)
      if (effect && 'tell' in effect && effect.tell.to.kind === 'organization')
        this.deliver(effect.tell as Message)
    }
  }
  giveUp(one: Upload): void {
    if (one.stage === 'announced' || one.stage === 'admitted' || one.stage === 'stored') {
      this.story.do('attachment.abandon', { artifact_id: one.id })
      if (this.#reply<{ abandoned: boolean }>().abandoned)
        this.send('quota.release', { artifact: one.id, until: one.expires_at })
    }
    one.stage = 'gone'
  }
  advance(one: Upload): void {
    const { story } = this
    const { size, id: artifact, key } = one
    if (one.stage === 'new') {
      const refused = story.do('attachment.reserve', {
        file: { name: 'a', mime_type: 'image/png', size_bytes: size, sha256: 'ab', as: 'image' },
        hash: 'h',
        organization: 'org_1',
        ...(key !== undefined && { key }),
      })
      const reply = this.#reply<{ artifact_id: string; expires_at?: number } | undefined>()
      one.stage = refused || reply?.expires_at === undefined ? 'gone' : 'announced'
      if (reply?.expires_at !== undefined) {
        one.id = reply.artifact_id
        one.expires_at = reply.expires_at
      }
    } else if (one.stage === 'announced') {
      const { expires_at } = one
      const refused = this.send('quota.reserve', { artifact, bytes: size, expires_at })
      if (refused === undefined) one.stage = 'admitted'
      else if (refused === 'artifact_conflict') one.stage = 'gone'
      else this.giveUp(one)
    } else if (one.stage === 'admitted') {
      if (this.file(artifact) && this.file(artifact)?.state !== 'erased') {
        this.store.add(fileName(artifact))
        one.stage = 'stored'
      } else one.stage = 'gone'
    } else if (one.stage === 'stored') {
      const refused = story.do('session.attach', { artifact_id: artifact })
      if (refused) this.store.delete(fileName(artifact))
      else this.send('quota.settle', { artifact, bytes: size })
      one.stage = 'gone'
    }
  }
  file(id: string): SessionFile | undefined {
    return this.story.session.state.attachments?.[id]
  }
  delete({ id, size }: Upload, bySession: boolean): void {
    if (id === '') return
    const refused = bySession
      ? this.story.do('session.detach', { artifact_id: id })
      : this.story.artifact(id, 'artifact.delete', { viewer: owner })
    const kept = this.story.artifacts.get(id)?.state
    if (refused || kept?.state !== 'deleted') return
    this.store.delete(fileName(id))
    const until = kept.until as number
    this.send('quota.refund', { artifact: id, bytes: size, until, direct: true })
  }
  wake(): void {
    if ((this.story.session.deadline() ?? Infinity) <= this.story.at) this.story.do('wake', {})
    for (const [id, scene] of this.story.artifacts)
      if (scene.deadline() !== undefined) throw new Error(`${id} has a deadline of its own`)
  }
  agree(): void {
    for (const [id, { state }] of this.story.artifacts) {
      const of = { pending: 'coming', ready: 'stored', deleted: 'erased', abandoned: undefined }
      const wanted = state && of[state.state]
      const gone = this.story.session.state.gone && wanted === 'erased'
      if (this.file(id)?.state !== (gone ? undefined : wanted))
        throw new Error(`${id} is ${state?.state}, but ${this.file(id)?.state} in its session`)
    }
  }
  settle(): void {
    this.story.pass(24 * 3_600_000)
    this.wake()
    while (this.story.artifactEffects.length > 0) this.perform(false)
  }
  check(): void {
    this.agree()
    const stored = Object.values(this.story.session.state.attachments ?? {}).filter(
      ({ state }) => state === 'stored',
    )
    const { used_bytes, artifact_count, pending_count } = this.quota()
    const bytes = stored.reduce((sum, { artifact }) => sum + artifact.size_bytes, 0)
    const [found, wanted] = [
      [used_bytes, artifact_count, pending_count],
      [bytes, stored.length, 0],
    ]
    if (String(found) !== String(wanted))
      throw new Error(`the quota is ${found}, but should be ${wanted}`)
    const names = stored.map(({ artifact }) => fileName(artifact.id)).sort()
    if (String([...this.store].sort()) !== String(names))
      throw new Error(`stored are ${[...this.store]}, but should be ${names}`)
  }
}

const { which, advance, crash, fail, direct, pass } = uploadSteps(UPLOADS)
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: advance,
  },
  { weight: 1, arbitrary: crash },
  { weight: 1, arbitrary: fail },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('delete' as const), which, session: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('perform' as const), twice: fc.boolean() }) },
  { weight: 3, arbitrary: direct },
  {
    weight: 1,
    arbitrary: pass,
  },
  { weight: 1, arbitrary: fc.constant({ do: 'end' as const }) },
)
/** Random uploads. Uploads with the same key have the same bytes. */
const uploads = fc
  .tuple(
    uploadSizes(UPLOADS),
    fc.array(fc.option(fc.nat({ max: 1 }), { nil: undefined }), {
      minLength: UPLOADS,
      maxLength: UPLOADS,
    }),
  )
  .map(([sizes, keys]) =>
    sizes.map((size, n) => {
      const key = keys[n]
      return key === undefined
        ? { size, key: undefined }
        : { size: sizes[keys.indexOf(key)] ?? 0, key: `user_1 ${key}` }
    }),
  )

t.test('files, artifacts, bytes and quota agree after every history', async (t) => {
  const seen = { ready: 0, abandoned: 0, deleted: 0, ended: 0 }
  fc.assert(
    fc.property(
      uploads,
      fc.array(step, { minLength: 10, maxLength: 60, size: 'max' }),
      fc.boolean(),
      (sizes, steps, ends) => {
        const world = new World(sizes)
        for (const one of steps) {
          if (one.do === 'pass') {
            world.story.pass(one.minutes * 60_000)
            world.wake()
          } else if (one.do === 'direct') {
            const message = world.direct[one.which % Math.max(1, world.direct.length)]
            if (message) world.deliver(message)
          } else if (one.do === 'perform') world.perform(one.twice)
          else if (one.do === 'end') {
            if (ends) world.story.do('session.delete', {})
          } else {
            const upload = world.uploads[one.which] as Upload
            if (one.do === 'advance') for (let n = 0; n < one.steps; n++) world.advance(upload)
            else if (one.do === 'crash') upload.stage = 'gone'
            else if (one.do === 'fail') world.giveUp(upload)
            else world.delete(upload, one.session)
          }
          world.agree()
        }
        world.settle()
        world.check()
        for (const message of world.direct) world.deliver(message)
        world.check()
        for (const { state } of world.story.artifacts.values())
          if (state && state.state !== 'pending') seen[state.state]++
        if (world.story.session.state.gone) seen.ended++
      },
    ),
    { numRuns: 1500 },
  )
  t.ok(
    Object.values(seen).every((count) => count > 50),
    JSON.stringify(seen),
  )
})
