/**
 * The setup for tests of the gateway's modules: real actors behind `ask` and `command`, a manual
 * clock, and records of calls.
 */
import { createHash, createHmac } from 'node:crypto'
import { organizationActor } from '../../../actors/projects/organization/organization.ts'
import { projectActor } from '../../../actors/projects/project.ts'
import { openAuthentication } from '../../../gateway/auth/authenticate.ts'
import { openTouches } from '../../../gateway/auth/key-last-used.ts'
import { newKey } from '../../../gateway/auth/keys.ts'
import { openDirectory } from '../../../gateway/directory.ts'
import { uniqueTexts } from '../../../gateway/http/hex.ts'
import type { Outcome } from '../../../gateway/ports.ts'
import { permissions } from '../../../protocol/access/schema.ts'
import type { Address, Command } from '../../../protocol/entry.ts'
import { isRefusal, refuse } from '../../../protocol/errors.ts'
import { makeId } from '../../../protocol/ids.ts'
import { type Answer, type Played, played, START } from '../../actors/support/played.ts'
import { fakeWorld } from '../../support/fake-world.ts'

export const ORG = 'org_01AAAAAAAAAAAAAAAAAAAAAAAA'
export const PRJ = 'prj_01AAAAAAAAAAAAAAAAAAAAAA0B'
/** The caller's permissions for a change, unless the test sets others. */
const everything = Object.keys(permissions)
export const seal = (text: string): Uint8Array =>
  createHmac('sha256', 'a secret of tests').update(text).digest()

/** Creates a gateway for an organization with its default project and a root key. */
export function edge() {
  let now = START
  let random = 0
  let timers: { at: number; run: () => void }[] = []
  const hash = (text: string) => createHash('sha256').update(text).digest('hex')
  const bytes = (length: number) =>
    createHash('sha256').update(`random ${random++}`).digest().subarray(0, length)
  const actors = new Map<string, Played>()
  const brand = { brand: 'Service' }
  const actor = ({ kind, id }: Pick<Address, 'kind' | 'id'>): Played => {
    let found = actors.get(id)
    if (!found)
      actors.set(
        id,
        (found = played(kind === 'organization' ? organizationActor(brand) : projectActor(brand), {
          project: id,
          kind,
          id,
        })),
      )
    found.at = now
    return found
  }
  const it = {
    asked: [] as string[],
    commands: [] as Command[],
    fresh: true,
    broken: false,
    ended: 0,
    /** While this promise is pending, `ask` does not answer. */
    gate: undefined as Promise<void> | undefined,
  }
  const decide = ({
    kind,
    id,
    name,
    input,
    origin,
  }: Pick<Command, 'kind' | 'id' | 'name' | 'input' | 'origin'>): Outcome => {
    const reply = actor({ kind, id }).send(name, input, origin)
    return isRefusal(reply) ? reply : { reply }
  }
  const command = async (command: Command): Promise<Outcome> => {
    it.commands.push(command)
    return it.broken ? refuse('service_unavailable') : decide(command)
  }
  const world = fakeWorld({
    node: 'gw1',
    now: () => now,
    monotonic: () => now,
    hash,
    seal,
    random: bytes,
    newCommandId: uniqueTexts(bytes),
    fresh: () => it.fresh,
    endedGateways: () => it.ended,
    organization: () => ORG,
    settings: { brand: 'Service', key_prefix: 'bat' },
    id: (prefix: 'workflow') => makeId(prefix, now, bytes(10)),
    later(ms: number, run: () => void) {
      const timer = { at: now + ms, run }
      timers.push(timer)
      return () => {
        timers = timers.filter((other) => other !== timer)
      }
    },
    command,
    commandRow: command,
    async ask(to: Address, name: string, input: unknown): Promise<unknown> {
      it.asked.push(`${to.id} ${name}`)
      const answer = it.broken
        ? undefined
        : (JSON.parse(JSON.stringify(actor(to).ask(name, input) ?? null)) as unknown)
      if (it.gate) await it.gate
      if (answer === undefined) throw new Error('nobody answers')
      return answer
    },
    log: { debug() {}, info() {}, warn() {}, error() {} },
  })
  const root = newKey(world, undefined)
  actor({ kind: 'organization', id: ORG }).send('organization.init', {
    name: 'Acme',
    project_id: PRJ,
    root_key: {
      id: 'key_01AAAAAAAAAAAAAAAAAAAAAAAA',
      hash: root.hash,
      key_prefix: root.key_prefix,
    },
  })
  const directory = openDirectory(world)
  const touches = openTouches(world)
  const { authenticate, again, console, note } = openAuthentication(world, directory, touches)
  /**
   * Applies a configuration change and clears the cached project, as the gateway does before it
   * answers.
   */
  const change = (project: string, name: string, input: object): Answer => {
    const outcome = decide({
      kind: project === ORG ? 'organization' : 'project',
      id: project,
      name,
      input: { holds: everything, ...input },
      origin: { at: now, principal: { type: 'service_account', id: 'svc_t' } },
    })
    directory.forget(project)
    return (isRefusal(outcome) ? outcome : outcome.reply) as Answer
  }
  return Object.assign(it, {
    world,
    directory,
    authenticate,
    again,
    console,
    note,
    root: root.key,
    change,
    /** Creates a project key. Returns its record, and the key itself as `text`. */
    projectKey(project: string, name: string, more: object = {}) {
      const { key, hash, key_prefix } = newKey(world, project)
      return { ...change(project, 'key.create', { name, hash, key_prefix, ...more }), text: key }
    },
    advance(ms: number) {
      for (const until = now + ms; ; ) {
        const next = timers.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0]
        if (!next) return void (now = until)
        timers = timers.filter((other) => other !== next)
        now = Math.max(now, next.at)
        next.run()
      }
    },
  })
}
export type TestEdge = ReturnType<typeof edge>
export const bearer = (key: string): string => `Bearer ${key}`
