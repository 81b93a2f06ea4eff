/** The graph of a run's workflow with the state of each step. */
import { useMemo } from 'preact/hooks'
import type { Spec } from '../../../../../protocol/workflows/spec.ts'
import { useQuery } from '../../../../api/query.ts'
import { Empty, Skeleton } from '../../../../design/states.tsx'
import { type NodeState, WorkflowGraph } from '../../../../graph/graph.tsx'
import { formatDuration, formatNumber } from '../../../../text/format.ts'
import { statusLabel, toneOf } from '../../status.tsx'
import type { StepView } from '../data/fold.ts'
import type { LiveRun, RunDetail } from '../data/live-run.ts'
import { placeOf, statusOf } from '../data/tree.ts'
import { runText as text } from '../text.ts'

/** Returns the id of the node that shows a step. */
function nodeOf(
  key: string,
  steps: ReadonlyMap<string, StepView>,
  top: ReadonlySet<string> | undefined,
): string {
  const at = placeOf(key, steps, top)
  if (!at)
    return key.startsWith('cleanup.') && !top?.has(key)
      ? key.replace(/^cleanup\.~*/, 'cleanup/')
      : key
  return steps.get(at.parent)?.kind === 'parallel'
    ? `${at.parent}/${at.branchName}/${at.leaf}`
    : `${at.parent}/${at.leaf}`
}

const activeStatuses: ReadonlySet<string> = new Set(['claimed', 'running', 'suspended'])

function stateOf(steps: readonly StepView[], chosen: string): NodeState {
  const status = statusOf(steps)
  const current = steps.some(({ key }) => key === chosen)
  const active = activeStatuses.has(status)
  const [only] = steps
  if (steps.length === 1 && only) {
    const { from, to } = only
    const spent = from === undefined || to === undefined ? '' : `, ${formatDuration(to - from)}`
    return { tone: toneOf(status), label: `${statusLabel(status)}${spent}`, current, active }
  }
  const counts = [...Map.groupBy(steps, (step) => step.status)].map(
    ([one, all]) => `${formatNumber(all.length)} ${statusLabel(one)}`,
  )
  return { tone: toneOf(status), label: counts.join(', '), current, active }
}

/** Shows the graph. `top` contains the keys of the top-level steps. */
export function RunGraph({
  project,
  run,
  detail,
  top,
  chosen,
}: {
  readonly project: string
  readonly run: LiveRun
  readonly detail: RunDetail
  readonly top: ReadonlySet<string> | undefined
  readonly chosen: string
}) {
  const ofLoop = 'loop_id' in detail
  const loop = useQuery('loop.get', ofLoop ? { project, id: detail.loop_id } : undefined).state
    .value
  const version = run.version.value
  const { steps } = run.fold
  const nodes = useMemo(() => {
    const grouped = Map.groupBy(steps.values(), ({ key }) => nodeOf(key, steps, top))
    return {
      states: new Map([...grouped].map(([id, all]) => [id, stateOf(all, chosen)])),
      steps: new Map([...grouped].map(([id, all]) => [id, all[0]?.key])),
    }
  }, [version, steps, top, chosen])
  const spec = ofLoop
    ? loop.data && { steps: loop.data.steps ?? [], cleanup: loop.data.cleanup ?? [] }
    : detail.spec
  if (!spec) return loop.loading ? <Skeleton lines={8} /> : <Empty title={text.noGraph} />
  return (
    <WorkflowGraph
      spec={spec as Pick<Spec, 'steps' | 'cleanup'>}
      states={nodes.states}
      height="62vh"
      hrefOf={({ id }) => {
        const key = nodes.steps.get(id)
        if (key === undefined) return undefined
        const query = new URLSearchParams(location.search)
        query.set('step', key)
        return `?${query}`
      }}
    />
  )
}
