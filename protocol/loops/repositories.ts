/**
 * The repositories of a loop. A system step of the run clones each repository before the first
 * authored step. The loop (`static`) or the event that started the run (`match`) determines the
 * repository.
 *
 * Invariants:
 * R1. A fork is never cloned. The head of a pull request is fetched from the repository that the
 *     request targets, as an exact commit under the reference that the host keeps for the request.
 * R2. Names and references in an event are data. They are validated here and never rendered as
 *     templates.
 */
import type { Static } from 'typebox'
import type { JsonObject } from '../common.ts'
import type { EnvironmentRepository } from '../environments/schema.ts'
import { getOwn } from '../lookup.ts'
import { isRepositoryName } from '../repositories/name.ts'
import type { Spec, Step } from '../workflows/spec.ts'
import type { Repository as Schema } from './schema.ts'

export type Repository = Static<typeof Schema>

/** The action of the system steps. */
export const CLONE = 'environment.git.clone'
const STEP = 'prepare_repository'

/** Returns the ids of the system steps for this number of repositories. */
export const preparationIds = (count: number): string[] =>
  count === 1 ? [STEP] : Array.from({ length: count }, (_, index) => `${STEP}_${index + 1}`)

/**
 * Returns the spec with the system steps before the authored steps. Authored steps keep their ids.
 * A step without an id gets its index among the authored steps as its id. The parameters of a
 * system step are determined when the step starts.
 */
export function withPreparation(spec: Spec, repositories: readonly Repository[]): Spec {
  if (repositories.length === 0) return spec
  const system = preparationIds(repositories.length).map(
    (id): Step => ({
      id,
      kind: 'action',
      config: { action_name: CLONE, execution_location: 'environment' },
    }),
  )
  const authored = spec.steps.map((step, index): Step => ({ ...step, id: step.id ?? `${index}` }))
  return { ...spec, steps: [...system, ...authored] }
}

/** The revision to check out; the default branch if all members are absent. */
interface Target {
  readonly branch?: string
  readonly commit?: string
  readonly fetch_ref?: string
}
/** A repository and its target. `fault`: the reason why the event determines no target. */
type Found = Target & { readonly full_name: string; readonly fault?: string }
/** The parameters for cloning a repository, or the reason why it cannot be cloned. */
export type Preparation =
  | (Target & { readonly repo_full_name: string; readonly dest: string })
  | { readonly fault: string }

const COMMIT = /^[0-9a-f]{40}([0-9a-f]{24})?$/i
const NOTHING = /^0+$/

/** Whether a text can be a branch, a tag, a full reference or a commit (git-check-ref-format). */
export const isRef = (text: string): boolean =>
  /^[^-/]/.test(text) && !/[\s\p{Cc}~^:?*[\\]|\.\.|\/\/|@\{|\/$|\.$|\.lock$/u.test(text)

/**
 * Returns the target that a reference selects. A name that does not begin with `refs/` selects a
 * branch or a tag.
 */
const targetOf = (ref: string): Target => {
  if (COMMIT.test(ref)) return { commit: ref }
  if (ref.startsWith('refs/heads/')) return { branch: ref.slice('refs/heads/'.length) }
  return ref.startsWith('refs/') ? { fetch_ref: ref } : { branch: ref }
}

const at = (value: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (inner, name) =>
      typeof inner === 'object' && inner !== null ? getOwn(inner as JsonObject, name) : undefined,
    value,
  )
const texts = (...values: readonly unknown[]): string | undefined =>
  values.find((value): value is string => typeof value === 'string' && value !== '')
const commitIn = (value: unknown): Target =>
  typeof value === 'string' && COMMIT.test(value) && !NOTHING.test(value) ? { commit: value } : {}

/**
 * Returns the target of a change request: its head commit, and the reference under which the target
 * repository keeps this commit.
 */
const request = (
  full_name: string,
  commit: unknown,
  number: unknown,
  branch: unknown,
  place: string,
): Found => {
  const head = commitIn(commit)
  if (head.commit === undefined || !Number.isSafeInteger(number))
    return { full_name, fault: 'the event names no head commit and number of the change request' }
  return {
    full_name,
    ...head,
    fetch_ref: `refs/${place}/${number}/head`,
    ...(typeof branch === 'string' && isRef(branch) && { branch }),
  }
}
/** Returns the target of a push: the pushed commit, or the default branch after a deletion. */
const pushed = (full_name: string, commit: unknown, ref: unknown): Found => {
  const head = commitIn(commit)
  if (head.commit === undefined || typeof ref !== 'string') return { full_name }
  if (!isRef(ref)) return { full_name, fault: 'the event names a reference that is not valid' }
  const { branch } = targetOf(ref)
  return { full_name, ...head, fetch_ref: ref, ...(branch !== undefined && { branch }) }
}
function ofGitHub(event: JsonObject): Found | undefined {
  const pull = event['pull_request']
  const head = at(pull, 'head', 'sha')
  const full_name = texts(
    head === undefined ? undefined : at(pull, 'base', 'repo', 'full_name'),
    at(event, 'repository', 'full_name'),
  )
  if (full_name === undefined) return undefined
  if (head !== undefined)
    return request(
      full_name,
      head,
      at(pull, 'number') ?? event['number'],
      at(pull, 'head', 'ref'),
      'pull',
    )
  return event['after'] === undefined
    ? { full_name }
    : pushed(full_name, event['after'], event['ref'])
}
function ofGitLab(event: JsonObject): Found | undefined {
  const full_name = texts(at(event, 'project', 'path_with_namespace'))
  if (full_name === undefined) return undefined
  const change = event['merge_request'] ?? event['object_attributes']
  const head = at(change, 'last_commit', 'id')
  if (head !== undefined)
    return request(
      texts(at(change, 'target', 'path_with_namespace')) ?? full_name,
      head,
      at(change, 'iid'),
      at(change, 'source_branch'),
      'merge-requests',
    )
  return event['after'] === undefined
    ? { full_name }
    : pushed(full_name, event['after'], event['ref'])
}

function found(
  { source, provider, full_name, ref }: Repository,
  event: JsonObject,
): Found | { readonly fault: string } {
  const named: Found | undefined =
    source === 'match'
      ? (provider === 'gitlab' ? ofGitLab : ofGitHub)(event)
      : full_name === undefined
        ? undefined
        : { full_name }
  if (!named) return { fault: 'the event that started the run names no repository' }
  if (!isRepositoryName(named.full_name))
    return { fault: 'the name of the repository is not valid' }
  return ref === undefined ? named : { full_name: named.full_name, ...targetOf(ref) }
}

/**
 * Returns the parameters of the system steps, in the order of the repositories. Each folder is
 * named after its repository. If an earlier folder has the same name, the owner is prepended to the
 * name, and a number is appended if necessary.
 */
export function preparations(
  repositories: readonly Repository[],
  event: JsonObject,
): Preparation[] {
  const taken = new Set<string>()
  const free = (folder: string): boolean => {
    const key = folder.toLowerCase()
    return !taken.has(key) && taken.add(key) !== undefined
  }
  return repositories.map((repository) => {
    const one = found(repository, event)
    if (one.fault !== undefined) return { fault: one.fault }
    const { full_name, fault: _, ...target } = one as Found
    const name = full_name.slice(full_name.lastIndexOf('/') + 1)
    const long = full_name.replaceAll('/', '-')
    let dest = [name, long].find(free)
    for (let n = 2; dest === undefined; n++) dest = [`${long}-${n}`].find(free)
    return { repo_full_name: full_name, dest, ...target }
  })
}

/** Returns the repositories that the environment of the run may use, each once. */
export function allowedRepositories(
  repositories: readonly Repository[],
  event: JsonObject,
): EnvironmentRepository[] {
  const all = new Map<string, EnvironmentRepository>()
  preparations(repositories, event).forEach((one, index) => {
    if ('fault' in one) return
    const { provider, push = false } = repositories[index] ?? {}
    const key = `${provider ?? 'github'}/${one.repo_full_name}`
    all.set(key, {
      full_name: one.repo_full_name,
      push: push || all.get(key)?.push === true,
      ...(provider !== undefined && { provider }),
    })
  })
  return [...all.values()]
}
