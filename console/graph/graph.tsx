/**
 * Shows the graph of a workflow. The nodes are a list of links or texts in the order of the
 * definition, so that screen readers and the keyboard reach all nodes.
 */
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Spec } from '../../protocol/workflows/spec.ts'
import { IconButton } from '../design/button.tsx'
import { Notice, Skeleton, type Tone } from '../design/states.tsx'
import { loadPart } from '../router/part.ts'
import { type GraphNode, graphOf, type PlacedGraph, placeGraph } from './graph.ts'
import { graphText as text } from './text.ts'
import { openingView, scaled, type View, wholeView } from './view.ts'

/** The state of a node. */
export interface NodeState {
  readonly tone: Tone
  /** The state as text, such as `completed, 1.2 s`. */
  readonly label: string
  readonly current?: boolean
  /** Whether the step is in progress. */
  readonly active?: boolean
}

interface Drag {
  readonly x: number
  readonly y: number
  readonly moved: boolean
}
/** Pixels by which an arrow key moves the graph. */
const STEP_PX = 60

/**
 * Shows the steps of a workflow.
 * @param props.states the states by node id (`GraphNode.id`).
 * @param props.hrefOf returns the URL to which a node links.
 */
export function WorkflowGraph({
  spec,
  states,
  hrefOf,
  height = '32rem',
}: {
  readonly spec: Pick<Spec, 'steps' | 'cleanup'>
  readonly states?: ReadonlyMap<string, NodeState>
  readonly hrefOf?: (node: GraphNode) => string | undefined
  readonly height?: string
}) {
  const id = JSON.stringify([spec.steps, spec.cleanup])
  const graph = useMemo(() => graphOf(spec), [id])
  const [placed, setPlaced] = useState<PlacedGraph>()
  const [failed, setFailed] = useState(false)
  useEffect(() => {
    let current = true
    loadPart('graph', () => import('@dagrejs/dagre'))
      .then(() => placeGraph(graph))
      .then(
        (next) => current && setPlaced(next),
        (error: unknown) => {
          console.error(error)
          if (current) setFailed(true)
        },
      )
    return () => {
      current = false
    }
  }, [graph])
  if (failed) return <Notice tone="bad">{text.failed}</Notice>
  if (!placed) return <Skeleton lines={8} />
  return (
    <Canvas
      graph={placed}
      height={height}
      first={firstShown(placed, states)}
      isKnown={states?.size !== 0}
    >
      <Frames graph={placed} />
      <Lines graph={placed} />
      <ol aria-label={text.label}>
        {placed.nodes.map((node) => (
          <Node
            key={node.id}
            node={node}
            graph={placed}
            state={states?.get(node.id)}
            href={hrefOf?.(node)}
          />
        ))}
      </ol>
    </Canvas>
  )
}

/**
 * Returns the id of the node at which a graph opens: the chosen node, otherwise the first that is
 * in progress, otherwise the first of all; undefined if the graph is empty.
 */
function firstShown(
  { nodes }: PlacedGraph,
  states: ReadonlyMap<string, NodeState> | undefined,
): string | undefined {
  const stateOf = ({ id }: GraphNode) => states?.get(id)
  const found =
    nodes.find((node) => stateOf(node)?.current) ?? nodes.find((node) => stateOf(node)?.active)
  return (found ?? nodes[0])?.id
}

function Canvas({
  graph,
  height,
  first,
  isKnown,
  children,
}: {
  readonly graph: PlacedGraph
  readonly height: string
  /** Id of the node that is visible at first if the graph does not fit. */
  readonly first: string | undefined
  /** Whether the states of the nodes are known. It is also true for a graph without states. */
  readonly isKnown: boolean
  readonly children: ComponentChildren
}) {
  const frame = useRef<HTMLDivElement>(null)
  const [view, setView] = useState<View>({ x: 0, y: 0, scale: 1 })
  const drag = useRef<Drag | null>(null)
  const show = (viewIn: (frame: { width: number; height: number }) => View): void => {
    const { clientWidth: width, clientHeight } = frame.current ?? {}
    if (width !== undefined && clientHeight !== undefined)
      setView(viewIn({ width, height: clientHeight }))
  }
  const fit = (): void => show((size) => wholeView(graph, size))
  const middle = (factor: number): void => {
    const { clientWidth: width = 0, clientHeight: tall = 0 } = frame.current ?? {}
    setView((now) => scaled(now, factor, width / 2, tall / 2))
  }
  useEffect(() => show((size) => openingView(graph, size, first)), [graph, isKnown])
  useEffect(() => {
    const element = frame.current
    const turn = (event: WheelEvent): void => {
      event.preventDefault()
      const around = element?.getBoundingClientRect()
      const [x, y] = [event.clientX - (around?.left ?? 0), event.clientY - (around?.top ?? 0)]
      setView((now) => scaled(now, Math.exp(-event.deltaY / 400), x, y))
    }
    // Only a non-passive listener can prevent the page from scrolling.
    element?.addEventListener('wheel', turn, { passive: false })
    return () => element?.removeEventListener('wheel', turn)
  }, [])
  const keys: Readonly<Record<string, () => void>> = {
    ArrowLeft: () => setView((now) => ({ ...now, x: now.x + STEP_PX })),
    ArrowRight: () => setView((now) => ({ ...now, x: now.x - STEP_PX })),
    ArrowUp: () => setView((now) => ({ ...now, y: now.y + STEP_PX })),
    ArrowDown: () => setView((now) => ({ ...now, y: now.y - STEP_PX })),
    '+': () => middle(1.25),
    '-': () => middle(0.8),
    '0': fit,
  }
  const { x, y, scale } = view
  return (
    <div class="graph">
      <div class="row graph-tools">
        <IconButton icon="plus" label={text.zoomIn} onClick={() => middle(1.25)} />
        <IconButton icon="minus" label={text.zoomOut} onClick={() => middle(0.8)} />
        <IconButton icon="fit" label={text.fit} onClick={fit} />
      </div>
      <div
        ref={frame}
        class="graph-frame"
        style={{ height }}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys move the graph
        tabIndex={0}
        role="group"
        aria-label={`${text.label}. ${text.help}`}
        onKeyDown={(event) => {
          const run = keys[event.key]
          if (!run || event.ctrlKey || event.metaKey || event.altKey) return
          event.preventDefault()
          event.stopPropagation()
          run()
        }}
        onFocusIn={({ target }) => {
          // The browser would scroll the frame to a focused node. The graph is moved instead.
          const element = frame.current
          if (!element || target === element) return
          element.scrollTo(0, 0)
          const around = element.getBoundingClientRect()
          const box = (target as HTMLElement).getBoundingClientRect()
          const out = (low: number, high: number, from: number, to: number): number =>
            low < from ? from - low + 16 : high > to ? to - high - 16 : 0
          const dx = out(box.left, box.right, around.left, around.right)
          const dy = out(box.top, box.bottom, around.top, around.bottom)
          if (dx !== 0 || dy !== 0) setView((now) => ({ ...now, x: now.x + dx, y: now.y + dy }))
        }}
        onPointerDown={(event) => {
          if (event.button === 0)
            drag.current = { x: event.clientX, y: event.clientY, moved: false }
        }}
        onPointerMove={(event) => {
          const from = drag.current
          if (!from) return
          const [dx, dy] = [event.clientX - from.x, event.clientY - from.y]
          if (!from.moved && Math.hypot(dx, dy) < 4) return
          event.currentTarget.setPointerCapture(event.pointerId)
          drag.current = { x: event.clientX, y: event.clientY, moved: true }
          setView((now) => ({ ...now, x: now.x + dx, y: now.y + dy }))
        }}
        onPointerUp={() => {
          drag.current = null
        }}
        onPointerCancel={() => {
          drag.current = null
        }}
        onDragStart={(event) => event.preventDefault()}
      >
        <div
          class="graph-picture"
          style={{
            width: `${graph.width}px`,
            height: `${graph.height}px`,
            transform: `translate(${x}px, ${y}px) scale(${scale})`,
          }}
        >
          {children}
        </div>
      </div>
    </div>
  )
}

const place = (graph: PlacedGraph, id: string) => {
  const box = graph.boxes.get(id)
  return {
    left: `${box?.x ?? 0}px`,
    top: `${box?.y ?? 0}px`,
    width: `${box?.width ?? 0}px`,
    height: `${box?.height ?? 0}px`,
  }
}

const Frames = ({ graph }: { readonly graph: PlacedGraph }) => (
  <>
    {graph.frames.map(({ id, label, kind }) => (
      <div key={id} class="graph-box small soft" style={place(graph, id)} aria-hidden="true">
        <span class="user-text clip">
          {kind === 'cleanup'
            ? text.cleanup
            : kind === 'for_each'
              ? text.items(label)
              : text.branches(label)}
        </span>
      </div>
    ))}
  </>
)

const Lines = ({ graph }: { readonly graph: PlacedGraph }) => (
  <svg class="graph-lines" width={graph.width} height={graph.height} aria-hidden="true">
    {graph.lines.map(({ from, to, points }) => {
      const [first, ...rest] = points
      const last = points.at(-1)
      if (!first || !last) return null
      return (
        <g key={`${from} ${to}`}>
          <path d={`M${first.x} ${first.y}${rest.map(({ x, y }) => `L${x} ${y}`).join('')}`} />
          <path
            d={`M${last.x - 4} ${last.y - 6}L${last.x} ${last.y}L${last.x + 4} ${last.y - 6}`}
          />
        </g>
      )
    })}
  </svg>
)

function Node({
  node,
  graph,
  state,
  href,
}: {
  readonly node: GraphNode
  readonly graph: PlacedGraph
  readonly state: NodeState | undefined
  readonly href: string | undefined
}) {
  const { label, kind, about, condition, next } = node
  const names = next.map((id) => graph.nodes.find((one) => one.id === id)?.label ?? id)
  const content = (
    <>
      <span class="graph-name user-text clip">{label}</span>
      <span class="graph-about small soft clip">
        {kind.replaceAll('_', ' ')}
        {about !== '' && <span class="user-text"> · {about}</span>}
      </span>
      {condition !== undefined && <span class="unseen">{text.condition(condition)}</span>}
      {state && <span class="unseen">{state.label}</span>}
    </>
  )
  const look = `graph-node ${state?.tone ?? 'neutral'}${state?.current ? ' current' : ''}`
  return (
    <li style={place(graph, node.id)} title={state?.label}>
      {href === undefined ? (
        <div class={look}>{content}</div>
      ) : (
        <a class={look} href={href}>
          {content}
        </a>
      )}
      <span class="unseen">{names.length > 0 ? text.then(names.join(', ')) : text.last}</span>
      {condition !== undefined && (
        <span class="graph-if small mono clip user-text" title={condition} aria-hidden="true">
          if <span class="user-text">{condition}</span>
        </span>
      )}
    </li>
  )
}
