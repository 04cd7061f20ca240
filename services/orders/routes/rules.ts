/** Who may order, cancel and stop trading; and who may look. */
export const writers = { key: "orders:write", admin: true } as const;
export const readers = { key: "read", admin: true } as const;
