/**
 * Turns the steps of a workflow into a graph and computes its layout. Edges lead from each step to
 * the steps that follow it. A step with branches or items and the steps inside it are surrounded by
 * a frame. The layout needs `@dagrejs/dagre`, which is loaded on demand.
 */
import type { Spec, Step } from '../../protocol/workflows/spec.ts'

/** A node, which represents one step. */
export interface GraphNode {
  /**
   * `a` for a step, `a/b` for a step inside the `for_each` step `a`, `a/branch/b` for a step of a
   * branch, `cleanup/a` for a step of the cleanup. The states of nodes refer to this id.
   */
  readonly id: string
  readonly label: string
  readonly kind: string
  /** The main setting of the step, such as the name of its action. */
  readonly about: string
  readonly condition?: string
  /** The frame that contains the node. */
  readonly frame?: string
  /** Ids of the nodes that follow. */
  readonly next: readonly string[]
}
/** A frame around a step with its items or branches, or around the cleanup. */
interface GraphFrame {
  readonly id: string
  readonly label: string
  readonly kind: 'parallel' | 'for_each' | 'cleanup'
}
/** A workflow as a graph. Nodes are in the order of the definition. */
export interface Graph {
  readonly nodes: readonly GraphNode[]
  readonly frames: readonly GraphFrame[]
}
/** A rectangle in pixels: its top left corner, width and height. */
interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}
/** A graph with its layout. */
export interface PlacedGraph extends Graph {
  readonly boxes: ReadonlyMap<string, Box>
  /** The edges between nodes, each with the points of its line. */
  readonly lines: readonly {
    readonly from: string
    readonly to: string
    readonly points: readonly { readonly x: number; readonly y: number }[]
  }[]
  readonly width: number
  readonly height: number
}

const keyOf = (step: Pick<Step, 'id'>, index: number): string => step.id ?? String(index)

function aboutOf(step: Step): string {
  switch (step.kind) {
    case 'action':
      return step.config.action_name
    case 'sleep':
      return step.config.duration ?? step.config.until ?? ''
    case 'wait_for_event':
      return step.config.event_type
    case 'agent':
      return step.config.agent_id ?? ''
    case 'loop':
      return step.config.loop_id ?? step.config.workflow_id ?? ''
    case 'interaction':
      return step.config.targets.join(', ')
    case 'check':
      return step.config.checks.map(({ name }) => name).join(', ')
    default:
      return ''
  }
}

/** Returns the graph of a workflow. */
export function graphOf({ steps, cleanup = [] }: Pick<Spec, 'steps' | 'cleanup'>): Graph {
  const nodes: (GraphNode & { next: string[] })[] = []
  const frames: GraphFrame[] = []
  let ends: { next: string[] }[] = []
  const add = (step: Step, id: string, index: number, frame?: string): void => {
    const node = {
      id,
      label: step.name ?? keyOf(step, index),
      kind: step.kind,
      about: aboutOf(step),
      ...(step.if !== undefined && { condition: step.if }),
      ...(frame !== undefined && { frame }),
      next: [],
    }
    for (const end of ends) end.next.push(id)
    nodes.push(node)
    ends = [node]
  }
  const inside = (inner: readonly Step[], prefix: string, frame: string): void =>
    inner.forEach((step, index) => {
      add(step, `${prefix}/${keyOf(step, index)}`, index, frame)
    })
  steps.forEach((step, index) => {
    const key = keyOf(step, index)
    if (step.kind !== 'for_each' && step.kind !== 'parallel') {
      add(step, key, index)
      return
    }
    const frame = `frame ${key}`
    frames.push({ id: frame, label: step.name ?? key, kind: step.kind })
    add(step, key, index, frame)
    if (step.kind === 'for_each') {
      inside(step.config.steps, key, frame)
      return
    }
    const head = ends
    const all: typeof ends = []
    for (const branch of step.config.branches) {
      ends = head
      inside(branch.steps, `${key}/${branch.id}`, frame)
      all.push(...ends)
    }
    ends = all
  })
  if (cleanup.length > 0) {
    const frame = 'frame/cleanup'
    frames.push({ id: frame, label: '', kind: 'cleanup' })
    cleanup.forEach((step, index) => {
      add(step as Step, `cleanup/${keyOf(step as Step, index)}`, index, frame)
    })
  }
  return { nodes, frames }
}

/** Size of a node in pixels. */
const nodeSize = { width: 208, height: 56 } as const

/** Computes the layout of a graph from top to bottom. */
export async function placeGraph(graph: Graph): Promise<PlacedGraph> {
  const { graphlib, layout } = await import('@dagrejs/dagre')
  const drawn = new graphlib.Graph({ compound: true })
  drawn.setGraph({ rankdir: 'TB', nodesep: 28, ranksep: 34, marginx: 16, marginy: 16 })
  drawn.setDefaultEdgeLabel(() => ({}))
  for (const { id } of graph.frames) drawn.setNode(id, {})
  for (const { id, frame } of graph.nodes) {
    drawn.setNode(id, { ...nodeSize })
    if (frame !== undefined) drawn.setParent(id, frame)
  }
  for (const { id, next } of graph.nodes) for (const to of next) drawn.setEdge(id, to)
  layout(drawn)
  const boxes = new Map<string, Box>()
  for (const id of drawn.nodes()) {
    const { x, y, width, height } = drawn.node(id) as unknown as Box
    boxes.set(id, { x: x - width / 2, y: y - height / 2, width, height })
  }
  const lines = drawn.edges().map((edge: { readonly v: string; readonly w: string }) => {
    const { points } = drawn.edge(edge) as { points: { x: number; y: number }[] }
    return { from: edge.v, to: edge.w, points }
  })
  const { width = 0, height = 0 } = drawn.graph() as { width?: number; height?: number }
  return { ...graph, boxes, lines, width, height }
}
