/**
 * Random orders of uploads and deletions by gateways that fail at any point. The organization
 * receives direct messages late, repeatedly, out of order or never. The effects of artifacts arrive
 * late but in order. Invariants: after all deliveries, the used quota is exactly that of the ready
 * artifacts, each ready artifact has its bytes, and no other bytes are stored. The used quota never
 * becomes negative, and never rises above its limit.
 */
import fc from 'fast-check'
import t from 'tap'
import { defineActor, type Effect } from '../../../actors/actor.ts'
import { organizationActor } from '../../../actors/projects/organization/organization.ts'
import type { ArtifactState } from '../../../protocol/artifacts/commands.ts'
import type { ArtifactQuota } from '../../../protocol/artifacts/schema.ts'
import { given, type Outcome, type Scene, START } from '../../support/given.ts'
import { actor, bytes, owner, upload } from './story.ts'
import { uploadSizes, uploadSteps } from './upload-steps.ts'

const LIMIT = 100
const UPLOADS = 3
const organization = defineActor(organizationActor({ brand: 'Service', artifact_quota: LIMIT }))
interface Message {
  readonly name: string
  readonly input: Readonly<Record<string, unknown>>
}
/** Progress of an upload at its gateway. `gone`: the gateway failed or has answered. */
type Stage = 'new' | 'announced' | 'admitted' | 'stored' | 'completed' | 'gone'

class Upload {
  readonly id: string
  readonly blob: string
  readonly size: number
  scene: Scene<ArtifactState | null> = given<ArtifactState | null>(actor)
  stage: Stage = 'new'
  expires_at = 0
  readonly effects: Effect[] = []
  constructor(index: number, size: number) {
    this.id = `art_${index}`
    this.blob = `blob_${index}`
    this.size = size
  }
}
class World {
  at = START
  organization: Scene<never> = given<never>(organization)
  readonly uploads: readonly Upload[]
  readonly store = new Set<string>()
  /** Direct messages. Each may be delivered at any time and more than once. */
  readonly direct: Message[] = []
  constructor(sizes: readonly number[]) {
    this.uploads = sizes.map((size, index) => new Upload(index, size))
  }
  tell(one: Upload, name: string, input: object = {}): Outcome<ArtifactState | null> {
    const self = { project: 'prj_1', kind: 'artifact', id: one.id } as const
    const done = one.scene.when(name, input, { at: this.at, self })
    one.scene = done
    one.effects.push(...done.effects)
    return done
  }
  quota(): Omit<ArtifactQuota, 'generated_at'> {
    return this.organization.ask('artifact_quota') as Omit<ArtifactQuota, 'generated_at'>
  }
  deliver({ name, input }: Message): boolean {
    const before = this.quota()
    const done = this.organization.when(name, input, { at: this.at })
    this.organization = done
    const { used_bytes, artifact_count } = this.quota()
    if (used_bytes < 0 || artifact_count < 0) throw new Error('a negative quota')
    if (used_bytes > LIMIT && used_bytes > before.used_bytes) throw new Error('over the limit')
    return done.refused === undefined
  }
  perform(one: Upload, twice: boolean): void {
    const effect = one.effects.shift()
    for (const _ of effect && twice ? [1, 2] : [1]) {
      if (effect && 'erase' in effect) for (const name of effect.erase) this.store.delete(name)
      if (effect && 'tell' in effect && effect.tell.to.kind === 'organization')
        this.deliver(effect.tell as Message)
    }
  }
  /** Abandons the upload. Bytes are erased only if the upload was not completed. */
  fail(one: Upload): void {
    if (one.stage === 'new' || one.stage === 'gone') return
    const { reply } = this.tell(one, 'artifact.abandon')
    if ((reply as { state: string }).state === 'abandoned') {
      this.store.delete(one.blob)
      this.direct.push({
        name: 'quota.release',
        input: { artifact: one.id, until: one.expires_at },
      })
    }
    one.stage = 'gone'
  }
  advance(one: Upload): void {
    const { id: artifact, size, blob, stage } = one
    if (stage === 'new') {
      const { reply } = this.tell(one, 'artifact.reserve', { ...upload, blob })
      one.expires_at = (reply as { expires_at: number }).expires_at
      one.stage = 'announced'
    } else if (stage === 'announced') {
      const input = { artifact, bytes: size, expires_at: one.expires_at }
      this.direct.push({ name: 'quota.reserve', input })
      if (this.deliver({ name: 'quota.reserve', input })) one.stage = 'admitted'
      else this.fail(one)
    } else if (stage === 'admitted') {
      const { reply, refused } = this.tell(one, 'artifact.renew')
      if (refused) {
        this.fail(one)
        return
      }
      one.expires_at = (reply as { expires_at: number }).expires_at
      this.store.add(blob)
      one.stage = 'stored'
    } else if (stage === 'stored') {
      const done = this.tell(one, 'artifact.complete', { ...bytes, size_bytes: size })
      if (done.refused) {
        this.fail(one)
        return
      }
      this.direct.push({ name: 'quota.settle', input: { artifact, bytes: size } })
      one.stage = 'completed'
    }
  }
  delete(one: Upload): void {
    if (this.tell(one, 'artifact.delete', { viewer: owner }).refused) return
    this.store.delete(one.blob)
    const { until } = one.scene.ask('content') as { until: number }
    const input = { artifact: one.id, bytes: one.size, until, direct: true }
    this.direct.push({ name: 'quota.refund', input })
  }
  wake(): void {
    for (const one of this.uploads)
      if ((one.scene.deadline() ?? Infinity) <= this.at) this.tell(one, 'wake')
  }
  /** Advances the time beyond all timeouts, and performs all effects. */
  settle(): void {
    this.at += 24 * 3_600_000
    this.wake()
    for (const one of this.uploads) while (one.effects.length > 0) this.perform(one, false)
  }
  check(): void {
    const ready = this.uploads.filter(({ scene }) => scene.state?.state === 'ready')
    const { used_bytes, artifact_count, pending_count } = this.quota()
    const wanted = [ready.reduce((sum, { size }) => sum + size, 0), ready.length, 0]
    const found = [used_bytes, artifact_count, pending_count]
    if (String(found) !== String(wanted))
      throw new Error(`the quota is ${found}, but should be ${wanted}`)
    const stored = [...this.store].sort()
    if (String(stored) !== String(ready.map(({ blob }) => blob).sort()))
      throw new Error(`stored are ${stored}`)
  }
}

const { which, advance, crash, fail, direct, pass } = uploadSteps(UPLOADS)
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: advance,
  },
  { weight: 1, arbitrary: crash },
  { weight: 1, arbitrary: fail },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('delete' as const), which }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('perform' as const), which, twice: fc.boolean() }),
  },
  { weight: 3, arbitrary: direct },
  {
    weight: 1,
    arbitrary: pass,
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('wake' as const) }) },
)

t.test('the quota is exact, and exactly the ready artifacts have bytes', async (t) => {
  const seen = { ready: 0, abandoned: 0, deleted: 0 }
  fc.assert(
    fc.property(
      uploadSizes(UPLOADS),
      fc.array(step, { minLength: 10, maxLength: 60, size: 'max' }),
      (sizes, steps) => {
        const world = new World(sizes)
        for (const one of steps) {
          if (one.do === 'pass') world.at += one.minutes * 60_000
          else if (one.do === 'wake') world.wake()
          else if (one.do === 'direct') {
            const message = world.direct[one.which % Math.max(1, world.direct.length)]
            if (message) world.deliver(message)
          } else {
            const upload = world.uploads[one.which] as Upload
            if (one.do === 'advance') for (let n = 0; n < one.steps; n++) world.advance(upload)
            else if (one.do === 'crash') upload.stage = 'gone'
            else if (one.do === 'fail') world.fail(upload)
            else if (one.do === 'delete') world.delete(upload)
            else world.perform(upload, one.twice)
          }
        }
        world.settle()
        world.check()
        for (const message of world.direct) world.deliver(message)
        world.check()
        for (const { scene } of world.uploads)
          if (scene.state && scene.state.state !== 'pending') seen[scene.state.state]++
      },
    ),
    { numRuns: 1500 },
  )
  t.ok(seen.ready > 50 && seen.abandoned > 50 && seen.deleted > 50, JSON.stringify(seen))
})
