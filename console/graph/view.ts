/** Pure functions for the visible part of a graph: its position and scale in a frame. */
import type { PlacedGraph } from './graph.ts'

/** The position of a graph's top left corner in the frame, in pixels, and its scale. */
export interface View {
  readonly x: number
  readonly y: number
  readonly scale: number
}
/** The size of the frame in pixels. */
interface Size {
  readonly width: number
  readonly height: number
}
/** Minimum and maximum scale of a graph; 1 is its natural size. */
const limits = { least: 0.15, most: 2.5 }
/** The least scale at which a graph opens, so that its texts can be read. */
const READABLE = 0.6

/** Returns a view that is scaled around a point of the frame. */
export function scaled(view: View, factor: number, x: number, y: number): View {
  const scale = Math.max(limits.least, Math.min(limits.most, view.scale * factor))
  const by = scale / view.scale
  return { scale, x: x - (x - view.x) * by, y: y - (y - view.y) * by }
}

/** Returns the view of a whole graph. */
export function wholeView(graph: Size, frame: Size): View {
  const { width, height } = frame
  const scale = Math.max(limits.least, Math.min(1, width / graph.width, height / graph.height))
  const y = Math.max(0, (height - graph.height * scale) / 2)
  return { scale, x: (width - graph.width * scale) / 2, y }
}

/**
 * Returns the view with which a graph opens: the whole graph if its texts can be read then.
 * Otherwise, the graph is as wide as the frame, or wider, and one node is visible.
 * @param node the id of the node.
 */
export function openingView(
  graph: Pick<PlacedGraph, 'boxes' | 'width' | 'height'>,
  frame: Size,
  node: string | undefined,
): View {
  const whole = wholeView(graph, frame)
  if (whole.scale >= READABLE) return whole
  const scale = Math.max(READABLE, Math.min(1, frame.width / graph.width))
  const box = graph.boxes.get(node ?? '') ?? { x: 0, y: 0, width: 0, height: 0 }
  /** Centres a part of the graph, but shows nothing beyond the graph if the graph is larger. */
  const shift = (visible: number, full: number, middle: number): number =>
    full * scale <= visible
      ? (visible - full * scale) / 2
      : Math.min(0, Math.max(visible - full * scale, visible / 2 - middle * scale))
  return {
    scale,
    x: shift(frame.width, graph.width, box.x + box.width / 2),
    y: shift(frame.height, graph.height, box.y + box.height / 2),
  }
}
