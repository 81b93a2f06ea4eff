/** Measures an element whenever it is scrolled or resized. */

/**
 * Calls `measure` after every scroll event and every change of the size of an element. In these
 * callbacks, the layout is up to date, so reading it is cheap. Returns a function that ends the
 * measurements.
 */
export function onScrollOrResize(element: Element, measure: () => void): () => void {
  const observer = new ResizeObserver(measure)
  observer.observe(element)
  element.addEventListener('scroll', measure, { passive: true })
  return () => {
    observer.disconnect()
    element.removeEventListener('scroll', measure)
  }
}
