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
/** Minimum scale at which a graph opens. At this scale, its texts can still be read. */
const READABLE = 0.6

/** Returns a view that is scaled around a point of the frame. */
export function scaled(view: View, factor: number, x: number, y: number): View {
  const scale = Math.max(limits.least, Math.min(limits.most, view.scale * factor))
  const by = scale / view.scale
  return { scale, x: x - (x - view.x) * by, y: y - (y - view.y) * by }
}

/** Returns the view that fits a whole graph into the frame and centers it. */
export function wholeView(graph: Size, frame: Size): View {
  const { width, height } = frame
  const scale = Math.max(limits.least, Math.min(1, width / graph.width, height / graph.height))
  const y = Math.max(0, (height - graph.height * scale) / 2)
  return { scale, x: (width - graph.width * scale) / 2, y }
}

/**
 * Returns the initial view of a graph. If the texts are readable when the whole graph fits the
 * frame, the whole graph is visible. Otherwise, the graph has its natural size, or is scaled down
 * to the width of the frame but not below `READABLE`, and the view is centered on `node`.
 * @param node id of a node; by default, the view is at the top left corner of the graph.
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
  /**
   * Returns the offset that centres the position `middle`, or the whole graph if it fits. A graph
   * that is larger than the frame is never scrolled past its edges.
   */
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
