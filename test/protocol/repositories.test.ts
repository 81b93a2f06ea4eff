/** Which repository and commit the system steps of a loop clone, and into which folder. */
import fc from 'fast-check'
import t from 'tap'
import { checkLoop } from '../../protocol/loops/check.ts'
import {
  allowedRepositories,
  isRef,
  preparations,
  type Repository,
} from '../../protocol/loops/repositories.ts'
import { isRepositoryName } from '../../protocol/repositories/name.ts'
import { actionPlaces } from '../../protocol/rules/workflow-check/actions.ts'

const SHA = 'a1b2c3d4e5'.repeat(4)
const cloned = (repository: Repository, event: Record<string, unknown> = {}) =>
  preparations([repository], event)[0]
const match: Repository = { source: 'match' }
const repository = { full_name: 'shop/orders' }
const pull = (head: object, more: object = {}) => ({
  action: 'opened',
  number: 12,
  repository,
  pull_request: { number: 12, base: { ref: 'main', repo: repository }, head, ...more },
})
const orders = { repo_full_name: 'shop/orders', dest: 'orders' }

t.test('a static repository is cloned at its ref, or at the default branch', async (t) => {
  const at = (ref?: string) => cloned({ full_name: 'shop/orders', ...(ref && { ref }) })
  t.strictSame(at(), orders)
  t.strictSame(at('main'), { ...orders, branch: 'main' })
  t.strictSame(at('refs/heads/fix/1'), { ...orders, branch: 'fix/1' })
  t.strictSame(at('refs/tags/v1'), { ...orders, fetch_ref: 'refs/tags/v1' })
  t.strictSame(at(SHA), { ...orders, commit: SHA })
})

t.test('a push is cloned at its commit', async (t) => {
  t.strictSame(cloned(match, { repository, ref: 'refs/heads/main', after: SHA }), {
    ...orders,
    commit: SHA,
    fetch_ref: 'refs/heads/main',
    branch: 'main',
  })
  t.strictSame(cloned(match, { repository, ref: 'refs/tags/v1', after: SHA }), {
    ...orders,
    commit: SHA,
    fetch_ref: 'refs/tags/v1',
  })
  t.strictSame(
    cloned(match, { repository, ref: 'refs/heads/old', after: '0'.repeat(40), deleted: true }),
    orders,
    'a push that deletes a branch: the default branch',
  )
})

t.test('a pull request is cloned at its head, from the repository that it targets', async (t) => {
  const wanted = { ...orders, commit: SHA, fetch_ref: 'refs/pull/12/head', branch: 'fix' }
  t.strictSame(cloned(match, pull({ sha: SHA, ref: 'fix', repo: repository })), wanted)
  t.strictSame(
    cloned(
      match,
      pull({ sha: SHA, ref: 'fix', repo: { full_name: 'stranger/orders', fork: true } }),
    ),
    wanted,
    'the fork is not cloned',
  )
  t.strictSame(
    cloned(match, pull({ sha: SHA, ref: '--upload-pack=x' })),
    { ...orders, commit: SHA, fetch_ref: 'refs/pull/12/head' },
    'a branch name that git would refuse is left out',
  )
  t.match(cloned(match, pull({ sha: 'short', ref: 'fix' })), { fault: /no head commit/ })
})

t.test('a merge request of GitLab is cloned from its target', async (t) => {
  const gitlab: Repository = { source: 'match', provider: 'gitlab' }
  t.strictSame(
    cloned(gitlab, {
      project: { path_with_namespace: 'shop/eu/orders' },
      object_attributes: {
        iid: 3,
        source_branch: 'fix',
        target: { path_with_namespace: 'shop/eu/orders' },
        source: { path_with_namespace: 'stranger/orders' },
        last_commit: { id: SHA },
      },
    }),
    {
      repo_full_name: 'shop/eu/orders',
      dest: 'orders',
      commit: SHA,
      fetch_ref: 'refs/merge-requests/3/head',
      branch: 'fix',
    },
  )
})

t.test(
  'another event is cloned at the default branch, and a ref overrides the event',
  async (t) => {
    t.strictSame(cloned(match, { repository, issue: { number: 1 } }), orders)
    t.strictSame(cloned({ ...match, ref: 'stable' }, pull({ sha: SHA, ref: 'fix' })), {
      ...orders,
      branch: 'stable',
    })
    t.strictSame(cloned({ ...match, ref: 'stable' }, pull({ sha: 'short' })), {
      ...orders,
      branch: 'stable',
    })
  },
)

t.test('an event without a usable repository is a fault', async (t) => {
  t.match(cloned(match, {}), { fault: /names no repository/ })
  for (const full_name of ['orders', '../../etc', 'a/..', 'a/-x', 'a//b', '-a/b', 'a/b c', 'a/b\n'])
    t.match(cloned(match, { repository: { full_name } }), { fault: /not valid/ }, full_name)
  t.match(cloned(match, { repository: { full_name: 7 } }), { fault: /names no repository/ })
})

t.test('any event gives a fault or parameters that are safe arguments of git', async (t) => {
  const text = fc.oneof(
    fc.constantFrom(SHA, 'refs/heads/main', 'shop/orders', '--help', '../x', '', '0'.repeat(40)),
    fc.string({ unit: fc.nat(0xffff).map((code) => String.fromCharCode(code)) }),
  )
  const event = fc.record(
    {
      repository: fc.record({ full_name: text }),
      ref: fc.oneof(text, fc.integer()),
      after: fc.oneof(text, fc.constant(null)),
      number: fc.oneof(fc.integer(), text),
      pull_request: fc.oneof(
        fc.constant(null),
        fc.record(
          { head: fc.record({ sha: text, ref: text }), base: fc.record({ repo: fc.object() }) },
          { requiredKeys: [] },
        ),
      ),
    },
    { requiredKeys: [] },
  )
  let prepared = 0
  fc.assert(
    fc.property(event, (given) => {
      const one = cloned(match, given as Record<string, unknown>)
      if (!one || 'fault' in one) return one !== undefined && one.fault !== ''
      prepared++
      const { repo_full_name, dest, branch, commit, fetch_ref } = one
      return (
        isRepositoryName(repo_full_name) &&
        !dest.includes('/') &&
        !/^[-.]+$|^-/.test(dest) &&
        [branch, fetch_ref].every((ref) => ref === undefined || isRef(ref)) &&
        (commit === undefined || /^[0-9a-fA-F]{40,64}$/.test(commit))
      )
    }),
    { numRuns: 2000 },
  )
  t.ok(prepared > 20, `${prepared} events named a repository`)
})

t.test('folders never collide', async (t) => {
  const name = fc.constantFrom('a', 'A', 'a-b', 'b')
  fc.assert(
    fc.property(fc.array(fc.tuple(name, name), { minLength: 1, maxLength: 20 }), (names) => {
      const all = preparations(
        names.map((parts) => ({ full_name: parts.join('/') })),
        {},
      ).map((one) => ('dest' in one ? one.dest.toLowerCase() : ''))
      return new Set(all).size === names.length
    }),
  )
  t.pass()
})

t.test(
  'a repository that is declared twice may be pushed to if one of them allows it',
  async (t) => {
    t.strictSame(
      allowedRepositories(
        [
          { full_name: 'a/b' },
          { full_name: 'a/b', push: true },
          { full_name: 'a/b', provider: 'forge' },
          match,
        ],
        {},
      ),
      [
        { full_name: 'a/b', push: true },
        { full_name: 'a/b', push: false, provider: 'forge' },
      ],
    )
  },
)

const step = { kind: 'action', config: { action_name: 'build' } } as const
const faults = (more: object) =>
  checkLoop({ steps: [step], ...more } as Parameters<typeof checkLoop>[0]).map(({ field }) => field)

t.test('a loop with repositories is checked when it is saved', async (t) => {
  t.same(faults({ repositories: [{ full_name: 'shop/orders', ref: 'main' }] }), [])
  t.same(faults({ repositories: [{}] }), ['repositories[0].full_name'])
  t.same(faults({ repositories: [{ full_name: 'orders' }] }), ['repositories[0].full_name'])
  t.same(faults({ repositories: [{ full_name: 'a/b', ref: '--x' }] }), ['repositories[0].ref'])
  t.same(faults({ repositories: [match] }), ['repositories[0].source'])
  const triggers = [{ kind: 'event', config: { event_type: 'github.push.pushed' } }]
  t.same(faults({ repositories: [match], triggers }), [])
  t.same(
    faults({
      repositories: [{ full_name: 'a/b' }],
      defaults: { environment: { disabled: true } },
    }),
    ['repositories'],
  )
})

t.test('steps may read the outputs of the system steps', async (t) => {
  const reads = (...ids: string[]) =>
    ids.map((id) => ({
      kind: 'action',
      config: { action_name: 'build', parameters: { dir: `\${{ steps.${id}.output.dir }}` } },
    }))
  const one = [{ full_name: 'a/b' }]
  t.same(faults({ repositories: one, steps: reads('prepare_repository') }), [])
  t.same(faults({ repositories: [], steps: reads('prepare_repository') }).length, 1)
  t.same(faults({ repositories: one, steps: reads('prepare_repository_1') }).length, 1)
  t.same(
    faults({
      repositories: [...one, ...one],
      steps: reads('prepare_repository_1', 'prepare_repository_2'),
    }),
    [],
  )
  const indexed = [{ ...step, id: 'first' }, reads('x')[0]].map((one, index) =>
    index === 1
      ? {
          kind: 'action',
          config: { action_name: 'b', parameters: { n: '${{ steps[0].output.n }}' } },
        }
      : one,
  )
  t.same(faults({ repositories: one, steps: indexed }), [], 'indexes count authored steps')
})

t.test('a loop with repositories needs the permission to clone', async (t) => {
  t.same(actionPlaces({ repositories: [match], steps: [] }, 'loop'), [
    { field: 'loop.repositories', name: 'environment.git.clone' },
  ])
  t.same(actionPlaces({ repositories: [] }), [])
})
