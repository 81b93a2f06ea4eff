/** Whether a URL refers to the machine that opens it. */
export const isLoopback = (url: string): boolean =>
  URL.canParse(url) && /^(localhost|127\..*|\[::1\])$/.test(new URL(url).hostname)
