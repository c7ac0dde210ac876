-- additive
-- The uploaded images of products. The file of each is in a folder or a bucket, under its name.
-- `base` is the address before /images in the URLs that products have of it; `unused_at` is since
-- when no product has it. With `removing` its file is being deleted.
create table images (
  name text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  media_type text not null,
  bytes bigint not null,
  width bigint not null,
  height bigint not null,
  base text /*postgres collate "C"*/ not null,
  created_at bigint not null,
  unused_at bigint,
  removing boolean not null default false
);
create index images_owner on images (owner_id, bytes);
create index images_unused on images (unused_at) where unused_at is not null;
create index images_base on images (base, name);

-- Which products have which of these images.
create table product_images (
  product_id text /*postgres collate "C"*/ not null references products (id) on delete cascade,
  name text /*postgres collate "C"*/ not null,
  owner_id text /*postgres collate "C"*/ not null,
  primary key (product_id, name)
);
create index product_images_name on product_images (name);
create index product_images_owner on product_images (owner_id);
